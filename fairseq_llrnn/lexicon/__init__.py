"""What is known of words, before anything is known about a sentence."""

from fairseq_llrnn.lexicon.options import LexiconOptions

__all__ = ["LexiconOptions"]
