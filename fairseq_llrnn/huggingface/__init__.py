"""Hugging Face's transformers with log-linear models (docs/guides/huggingface.md).

processor.py has a logits processor. It takes any background, on any softmax model, without training.
constructors.py makes them for any tokenizer.
constraints.py turns regular expressions (regular_expressions.py) and grammars into automata over bytes.
parsers.py and schemas.py read Lark grammars and JSON schemas by llguidance. schema_parts.py finds parts of schemas.
witnesses.py and schema_lengths.py find how their texts end within a number of tokens.
free_text.py has constraints in free text, tools.py calls of tools, batch_rows.py a constraint for each row of a batch.
parsed_texts.py returns the objects that texts stand for.
byte_automata.py has these automata, and what they may cost.
token_texts.py, lifting.py and token_weights.py turn them into weights of any tokenizer's tokens.
required_terms.py, background_weights.py and combined_weights.py have other weights.
token_words.py has tokens of a prior.
healing.py begins a constraint inside the last tokens of a prompt.
combinations.py compares the processors of a product or mixture.
limited_search.py takes the limit of a search from `generate`.
normalisation.py and prefix_states.py compute log p′ and follow the hypotheses of a search.
word_ngrams.py gives tokens the weights of n-grams over words.
models.py has what the models with the head share: files, numbers of words, searches (model_search.py).
word_tables.py has the words that their networks read.
causal_lm.py has language models over any AutoModel.
seq2seq.py has encoder-decoders over any AutoModel.
wrapping.py puts the head on a pretrained model.
scoring.py scores texts under any causal model. tokenisations.py sums over all tokenisations of a word.
training.py gives trainers of TRL the distribution of a constraint. vllm_processor.py is for servers.
loading.py reads saved models for scores.
fine_tuning.py trains a network of transformers with its own tokenizer, as a baseline.

Importing this package registers the models with the Auto classes, if transformers is installed.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.errors import OptionError, from_checkout
from fairseq_llrnn.huggingface.processor import BackgroundProcessor, Limits, Tag
from fairseq_llrnn.huggingface.scoring import CausalScorer
from fairseq_llrnn.huggingface.token_words import dictionary_of, words_of_tokens

if TYPE_CHECKING or importlib.util.find_spec("transformers") is not None:
    from fairseq_llrnn.huggingface.causal_lm import LogLinearCausalConfig, LogLinearForCausalLM
    from fairseq_llrnn.huggingface.seq2seq import LogLinearForSeq2SeqLM, LogLinearSeq2SeqConfig
    from fairseq_llrnn.huggingface.training import constrain_trainer

__all__ = [
    "BackgroundProcessor",
    "CausalScorer",
    "Limits",
    "LogLinearCausalConfig",
    "LogLinearForCausalLM",
    "LogLinearForSeq2SeqLM",
    "LogLinearSeq2SeqConfig",
    "Tag",
    "constrain_trainer",
    "dictionary_of",
    "words_of_tokens",
]


def __getattr__(name: str) -> Any:
    """Raises OptionError where the name needs transformers and it is not installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise OptionError(f"{name}: expected the package transformers, found none; {from_checkout('hf')}")
