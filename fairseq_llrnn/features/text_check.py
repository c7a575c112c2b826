"""Reasons why words of a text are outside a dictionary: another Unicode form, another case, or attached punctuation.

An untokenised text has *dog.* instead of the dictionary's *dog*. `TextCheck` counts such words while a text is read,
and returns one reason, with a command that corrects the text.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from fairseq_llrnn.files.text_lines import in_other_form, other_forms
from fairseq_llrnn.lexicon.casing import case_key, is_lower

logger = logging.getLogger(__name__)
# Punctuation that tokenisers separate. Full stops of abbreviations and ordinal numbers are rare.
MARKS = ".,;:!?…\"()[]«»“”„‹›¿¡،؛؟।۔。、，！？：；「」《》։՝"
LEAST_SHARE = 0.02  # of the words of a text; fewer are abbreviations, or capitals of sentences
SHELL = {
    "tokenise": "sacremoses -l LANGUAGE tokenize < {text} > {text}.tok; pip install sacremoses",
    "lower": "sed 's/.*/\\L&/' {text} > {text}.lower",
}
PYTHON = {"tokenise": "sacremoses.MosesTokenizer", "lower": "line.lower()"}


class TextCheck:
    """Counts the words of a text, those outside a dictionary, and those with another spelling in it.

    Attributes:
        words, unknown: numbers of words and unknown words so far.
        lacking: the different unknown words.
        cased, glued: numbers of words in another case, and with attached punctuation.
    """

    def __init__(self, vocabulary: Iterable[str], fixes: Mapping[str, str] = SHELL) -> None:
        """Start with no words.

        Args:
            vocabulary: the words of the dictionary, without `<unk>` and other special symbols.
            fixes: commands, or Python.
        """
        self.fixes = fixes
        self.vocabulary = frozenset(vocabulary)
        self.words = self.unknown = self.cased = self.glued = 0
        self.lacking = set[str]()
        self.cased_example = self.glued_example = ""

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(map(case_key, self.vocabulary))

    @cached_property
    def _is_lower(self) -> bool:
        return is_lower(self.vocabulary)

    def add(self, words: Iterable[tuple[str, int]]) -> None:
        """Count words of the text.

        Args:
            words: pairs of a word, which is not empty, and its number of occurrences.
        """
        for word, count in words:
            self.words += count
            if word not in self.vocabulary:
                self.unknown += count
                self.lacking.add(word)
                if (not self._is_lower or word != word.lower()) and case_key(word) in self._keys:
                    self.cased, self.cased_example = self.cased + count, self.cased_example or word
            if word[0] in MARKS or word[-1] in MARKS:
                bare = word.strip(MARKS)
                is_word = any(map(str.isalpha, bare))
                if is_word and (bare in self.vocabulary or case_key(bare) in self._keys):
                    self.glued, self.glued_example = self.glued + count, self.glued_example or word

    def advice(self, text: str, path: Path | str | None = None) -> str | None:
        """Return why words are outside the dictionary and how to fix the text, or None if no reason is found.

        Args:
            text: its name.
            path: its file (None: unknown).
        """
        if (reason := other_forms(text, self.lacking, self.vocabulary)) is not None:
            return reason
        file, threshold = "TEXT" if path is None else shlex.quote(str(path)), LEAST_SHARE * self.words
        if self.glued > threshold and self.glued >= self.cased:
            return (
                f"{text}: punctuation is glued to {self.glued:,} of {self.words:,} words, such as "
                f"{self.glued_example!r}: tokenise it ({self.fixes['tokenise'].format(text=file)})"
            )
        if not self.cased or not (self._is_lower or (self.cased > threshold and 2 * self.cased > self.unknown)):
            return None
        lower = self.fixes["lower"].format(text=file)
        fix = f"lower-case it ({lower})" if self._is_lower else "use the text with its own capitals"
        return (
            f"{text}: {self.cased:,} of {self.words:,} words are in the dictionary only in another case, such as "
            f"{self.cased_example!r}: {fix}"
        )

    def explains_most(self) -> bool:
        """Return whether case, attached punctuation or the Unicode form is the reason for most unknown words."""
        num_other_form = len(in_other_form(self.lacking, self.vocabulary))
        return 2 * max(self.cased, self.glued) > self.unknown or 2 * num_other_form > len(self.lacking)

    def warn(self, paths: Sequence[Path | str]) -> None:
        """Log the advice on a text of some files."""
        if (advice := self.advice(", ".join(map(str, paths)), paths[0] if len(paths) == 1 else None)) is not None:
            logger.warning(advice)
