"""Hugging Face's transformers with log-linear models (docs/guides/huggingface.md).

prefixes.py    the states of a search's hypotheses, found by what they have written
processor.py   a logits processor: any background, on any softmax model, without training
tokens.py      which token of a tokenizer is which word of a prior
"""

from fairseq_llrnn.huggingface.processor import BackgroundProcessor
from fairseq_llrnn.huggingface.tokens import dictionary_of, words_of_tokens

__all__ = ["BackgroundProcessor", "dictionary_of", "words_of_tokens"]
