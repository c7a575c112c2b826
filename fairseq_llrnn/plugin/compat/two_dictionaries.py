"""Which tasks have a source and a target, each with its words in a file dict.LANGUAGE.txt of the data folder."""

from fairseq.tasks.translation import TranslationTask


class TwoDictionaries:
    """A task of ours that has both: `source_dictionary` and `target_dictionary`; its options name their languages."""


TWO_DICTIONARIES = (TranslationTask, TwoDictionaries)
