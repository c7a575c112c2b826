"""Load the head of a trained model, to inspect its input vectors."""

from __future__ import annotations

from typing import Any

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.plugin.compat.loading import Places, load_model
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.names import name_of


def load_head(path: str, places: Places) -> LogLinearHead:
    """Return the head of a checkpoint's model, in evaluation mode.

    Raises:
        DataError: no checkpoint, or not one of our models.
        OptionError: its data or prior is not found.
    """
    decoder = load_model(path, places, _check_kind)[0].eval().decoder
    assert isinstance(decoder, LogLinearDecoder)
    return decoder.head


def _check_kind(path: str, cfg: Any) -> None:
    if not (model := name_of(cfg, "model")).startswith("llrnn_"):
        raise DataError(f"{path}: expected a model of this package (llrnn_…), found {model!r}; give another checkpoint")
