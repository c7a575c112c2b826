"""Hugging Face's transformers with log-linear models (docs/guides/huggingface.md).

processor.py   a logits processor: any background, on any softmax model, without training; states of prefixes
constraints.py, json_schema.py   regular expressions, schemas, grammars, … as automata over bytes
lifting.py, token_weights.py   these over any tokenizer's tokens; word_ngrams.py   n-grams of words over tokens
models.py      what the models with the head share: files, numbers of words, searches
causal_lm.py   language models over any AutoModel
seq2seq.py     encoder-decoders over any AutoModel
wrapping.py    the head on a pretrained model
scoring.py     scores of texts under any causal model; tokenisations.py sums over all tokenisations of a word
loading.py     reads saved models for scores

Importing this package registers the models with the Auto classes, if transformers is installed.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.errors import OptionError, from_checkout
from fairseq_llrnn.huggingface.processor import BackgroundProcessor, Limits, dictionary_of, words_of_tokens
from fairseq_llrnn.huggingface.scoring import CausalScorer

if TYPE_CHECKING or importlib.util.find_spec("transformers") is not None:
    from fairseq_llrnn.huggingface.causal_lm import LogLinearCausalConfig, LogLinearForCausalLM
    from fairseq_llrnn.huggingface.seq2seq import LogLinearForSeq2SeqLM, LogLinearSeq2SeqConfig

__all__ = [
    "BackgroundProcessor",
    "CausalScorer",
    "Limits",
    "LogLinearCausalConfig",
    "LogLinearForCausalLM",
    "LogLinearForSeq2SeqLM",
    "LogLinearSeq2SeqConfig",
    "dictionary_of",
    "words_of_tokens",
]


def __getattr__(name: str) -> Any:
    """Raises OptionError where the name needs transformers and it is not installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise OptionError(f"{name}: expected the package transformers, found none; {from_checkout('hf')}")
