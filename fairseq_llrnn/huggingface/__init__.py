"""Hugging Face's transformers with log-linear models (docs/guides/huggingface.md).

processor.py   a logits processor: any background, on any softmax model, without training; states of prefixes
constraints.py, lifting.py, token_weights.py   regular expressions, schemas, grammars, … over any tokenizer's tokens
marian.py      an encoder-decoder whose output is the log-linear head; only it imports transformers
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from fairseq_llrnn.errors import OptionError, from_checkout
from fairseq_llrnn.huggingface.processor import BackgroundProcessor, Limits, dictionary_of, words_of_tokens

_NEEDS_TRANSFORMERS = ("LogLinearMarian", "LogLinearMarianConfig")
__all__ = ["BackgroundProcessor", "Limits", "dictionary_of", "words_of_tokens", *_NEEDS_TRANSFORMERS]


def __getattr__(name: str) -> Any:
    """Raises OptionError where the name needs transformers and it is not installed."""
    if name not in _NEEDS_TRANSFORMERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec("transformers") is None:
        raise OptionError(f"{name}: expected the package transformers, found none; {from_checkout('hf')}")
    return getattr(importlib.import_module("fairseq_llrnn.huggingface.marian"), name)
