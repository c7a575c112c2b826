"""Words outside the dictionary as ids, and their log-probabilities in the open classes.

Sizes: V words, O open classes. Ids from V on are strings (features/dictionary.py). A word of the dictionary also has
such an id, its *alias*, by which training reads and scores it as if the dictionary lacked it. Probabilities are
conditioned on strings outside the dictionary: P_o(w) / (1 − Σ_{v ∈ V} P_o(v)). For an alias, the sum excludes its own
word. If a network spells, too (speller.py), an alias uses the distributions without its part of the rare words
(classes.py).

Ids live as long as the process.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairseq_llrnn.alignment.translation_table import is_word
from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.open_vocabulary.classes import fold_of
from fairseq_llrnn.open_vocabulary.spelling import draw_unknown, spell
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary

AT_ONCE = 10_000  # strings in one chunk
ROUNDING = 1e-3


class OpenTable:
    """The strings outside a dictionary with ids."""

    def __init__(self, vocabulary: OpenVocabulary, words: OpenWords) -> None:
        self.vocabulary, self.words = vocabulary, words
        none = np.zeros(0, dtype=np.int64)
        self._rows: tuple[np.ndarray, ...] = np.zeros((0, len(vocabulary.names)), dtype=np.float32), none, none
        self._outside = np.zeros(len(vocabulary.names))  # Σ P_o(w | w ∉ V) over the strings so far, ≤ 1
        self._spelt: dict[int, int] = {}  # open class -> id of its string

    def __deepcopy__(self, memo: object) -> OpenTable:
        return self  # a copy of a model belongs to the same dictionary

    def rows(self) -> tuple[np.ndarray, ...]:
        """Return facts about all strings with ids, by id − V.

        Returns:
            log P_o(w | w ∉ V), (m, O) float32. The most probable class argmax_o π_o P_o(w), (m,). The word of the
            dictionary with this alias, −1 for other strings, (m,).

        Raises:
            PriorError: these strings have more probability than the prior stores for all strings outside V.
        """
        index, symbols = self.words.word_index, self.words.symbols
        for start in range(self.words.num_words + len(self._rows[0]), len(symbols), AT_ONCE):
            new = symbols[start : start + AT_ONCE]
            log_probs = self.log_probs_of(new).astype(np.float32)
            classes = (log_probs + self.vocabulary.log_shares).argmax(1)
            words = np.array([index.get(string, -1) for string in new])
            with np.errstate(over="ignore"):
                self._outside += np.exp(log_probs[words < 0], dtype=np.float64).sum(0)
            if (self._outside > 1.0 + ROUNDING).any():
                raise PriorError(
                    f"log_outside of the prior: expected strings with a probability of at most 1 in class "
                    f"{self.vocabulary.names[int(self._outside.argmax())]}, found {self._outside.max():.3g}; build the "
                    "prior again"
                )
            before = self._rows
            self._rows = tuple(map(np.concatenate, zip(before, (log_probs, classes, words), strict=True)))
        return self._rows

    def log_probs_of(self, strings: Sequence[str]) -> np.ndarray:
        """Return log P_o(w | w ∉ V) of strings without ids; a word of the dictionary counts as its alias: (n,
        O) float64.
        """
        log_probs = self.vocabulary.strings.log_probs(strings)
        alias = (np.array([string in self.words.word_index for string in strings]) & is_word(strings))[:, None]
        log_outside = np.broadcast_to(self.vocabulary.log_outside, log_probs.shape)
        class_words = self.vocabulary.class_words
        if class_words is not None and alias.any():
            log_outside = log_outside.copy()
            folds = np.array([fold_of(string) for string in strings])
            for fold in np.unique(folds[alias[:, 0]]).tolist():
                chosen = np.flatnonzero(alias[:, 0] & (folds == fold))
                model = class_words.without(self.vocabulary.strings, fold)
                log_probs[chosen] = model.log_probs([strings[i] for i in chosen.tolist()])
                log_outside[chosen] = class_words.log_outside[fold]
        outside = np.logaddexp(log_outside, np.where(alias, log_probs, -np.inf))
        return log_probs - outside

    def aliases(self, words: np.ndarray) -> np.ndarray:
        """Return the ids of the aliases of words of the dictionary: (n,) -> (n,)."""
        return np.array([self.words.open(self.words.symbols[word]) for word in words.tolist()], dtype=np.int64)

    def drawn(self, of_class: int, count: int, random: np.random.Generator) -> np.ndarray:
        """Return the ids of samples of an open class, none of them a word of the dictionary: (count,)."""
        strings = draw_unknown(self.vocabulary.strings, of_class, count, self.words.word_index, random)
        return np.array([self.words.open(string) for string in strings], dtype=np.int64)

    def spelt(self, of_class: int) -> int:
        """Return the id of a probable string of an open class outside the dictionary: `spell` of spelling.py."""
        if of_class not in self._spelt:
            string = spell(self.vocabulary.strings, of_class, self.words.word_index)
            self._spelt[of_class] = self.words.open(string)
        return self._spelt[of_class]
