"""Which tasks have a source and a target, each with its words in a file dict.LANGUAGE.txt of the data folder."""

from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationTask


class TwoDictionaries:
    """A task of ours that has both; its options name their languages."""

    source_dictionary: Dictionary
    target_dictionary: Dictionary


TWO_DICTIONARIES = (TranslationTask, TwoDictionaries)
