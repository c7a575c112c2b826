"""The head of a trained model, for questions about what its network reads."""

from __future__ import annotations

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.plugin.compat.loading import Places, build_model, name_of, read_checkpoint, take_places
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder


def load_head(path: str, places: Places) -> LogLinearHead:
    """The head of a checkpoint's model, in evaluation mode.

    Raises:
        DataError: no checkpoint, or one of a model that is not ours. OptionError: its data or prior is not there.
    """
    state = read_checkpoint(path)
    if not name_of(state["cfg"], "model").startswith("llrnn_"):
        raise DataError(
            f"{path}: expected a model of ours (one whose name begins with llrnn_), found "
            f"{name_of(state['cfg'], 'model')!r}; give another checkpoint"
        )
    take_places(path, state["cfg"].task, places, state)
    model, _ = build_model(path, state, places)
    decoder = model.eval().decoder
    assert isinstance(decoder, LogLinearDecoder)
    return decoder.head
