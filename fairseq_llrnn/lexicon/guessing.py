"""Features of words guessed from their spelling.

Sizes: F features, n known words, m words to guess. Time O((n + m) · contexts), memory O(min(n, m) · contexts): all new
words with the same longest known ending share one guess, which is computed once.

A `Guesser` has counted the features of other words. A word's ending determines most of its morphology, and longer
endings determine more. A word has contexts e₀ (nothing), e₁, e₂, … (its kind, its last letter, its last two, …). The
share of words with feature f is estimated from the general to the specific context, as Witten & Bell (1991) do for
n-grams and TnT (Brants 2000, section 2.3) for tags by suffix:

    p(f | e₀) = n(f, e₀) / n(e₀)
    p(f | e_k) = ( n(f, e_k) + t(e_k) · p(f | e_{k−1}) ) / ( n(e_k) + t(e_k) )

n counts word types: unseen words resemble rare ones, and most types are rare. t(e) is the number of different analyses
(sets of features) of the words of e. If it is large, the ending determines little. For known words, n and t exclude the
word itself (leave-one-out), so that it is guessed as if it were new.

A guess is p, rounded to quarters without zeros (so that signatures stay few), times the mean value of f in words that
have it. The mean is 1 for all but real-valued features. So the possible analyses of an ending share the word.

If another source has analyses of many words, known and new ones (a package together with a treebank), they are used as
the kind of a word. Its endings are then compared with those of words with the same analyses: the possible forms,
weighed by the known words, in the features of the known words. Analyses that no other known word has are ignored.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairseq_llrnn.lexicon.features import feature_group

LONGEST_SUFFIX = 6
WHOLE = "whole analysis"
STEPS = 4  # shares are rounded to quarters
OFTEN = 32  # least number of a context's words to cache its sums
CAPITAL, NUMBER, SYMBOL = "capital", "number", "symbol"
Row = frozenset[str]
Context = tuple[str, str]
EVERYWHERE: Context = ("", "")


def kind_of(word: str) -> str:
    """Return the kind of a word's characters: `number`, `symbol`, `capital`, or "" for all else."""
    if not any(unicodedata.category(character)[0] in "LM" for character in word):
        return NUMBER if any(map(str.isdigit, word)) else SYMBOL
    return CAPITAL if word[:1].isupper() or word[:1].istitle() else ""


def contexts(word: str, kind: str = "") -> list[Context]:
    """Return kind and endings, from general to specific. Digits are treated alike, and `^` marks the beginning of a
    word.

    Args:
        kind: its kind, instead of that of its characters.
    """
    spelt = "^" + "".join("0" if character.isdigit() else character for character in word.lower())
    kind = kind or kind_of(word)
    suffixes = [(kind, spelt[-length:]) for length in range(1, min(LONGEST_SUFFIX, len(spelt)) + 1)]
    return [EVERYWHERE, (kind, ""), *suffixes] if kind else [EVERYWHERE, *suffixes]


@dataclass(frozen=True)
class Guesser:
    """Counts of features by the endings of known words."""

    names: tuple[str, ...]  # F, in alphabetical order
    means: np.ndarray  # (F,) mean value of each feature in words that have it
    rows: Mapping[str, Row]  # of the counted words
    counts: Mapping[Context, Counter[Row]]  # n(row, e)
    kinds: Mapping[str, str] = field(default_factory=dict)  # kinds of words by their analyses in another source
    _guesses: dict[Context, dict[str, float]] = field(default_factory=dict, init=False, repr=False)
    _tallies: dict[Context, tuple[int, int, np.ndarray]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def train(
        cls, lexicon: Mapping[str, Mapping[str, float]], asked: Collection[str], kinds: Mapping[str, str] | None = None
    ) -> Guesser:
        """Count the endings of the words of a lexicon.

        Args:
            lexicon: features by word, each word once whatever its frequency; at least one word.
            asked: words to guess. If they are few, only their endings are kept.
            kinds: of known words and words to guess, by their analyses in another source.
        """
        kinds = kinds or {}

        def all_contexts(word: str) -> list[Context]:
            return contexts(word) + (contexts(word, kinds[word])[1:] if word in kinds else [])

        totals: defaultdict[str, float] = defaultdict(float)
        num_words: Counter[str] = Counter()
        rows: dict[str, Row] = {}
        shared_rows: dict[Row, Row] = {}
        for word, features in lexicon.items():
            row = frozenset(name for name, value in features.items() if value != 0.0)
            rows[word] = shared_rows.setdefault(row, row)
            for name in rows[word]:
                totals[name] += features[name]
                num_words[name] += 1
        needed = {context for word in asked for context in all_contexts(word)} if len(asked) < len(rows) else None
        counts: defaultdict[Context, Counter[Row]] = defaultdict(Counter)
        for word, row in rows.items():
            for context in all_contexts(word):
                if needed is None or context in needed:
                    counts[context][row] += 1
        names = tuple(sorted(num_words))
        means = np.array([totals[name] / num_words[name] for name in names])
        return cls(names, means, rows, dict(counts), kinds)

    @cached_property
    def _places(self) -> dict[Row, np.ndarray]:
        """The numbers of the features of each row."""
        number = {name: i for i, name in enumerate(self.names)}
        return {row: np.array(sorted(number[f] for f in row), dtype=np.int64) for row in set(self.rows.values())}

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups of all features, in alphabetical order."""
        return tuple(sorted(set(map(feature_group, self.names))))

    def _tally(self, context: Context) -> tuple[int, int, np.ndarray]:
        """Return n(e), t(e), and n(f, e) for all features: (F,)."""
        tally = self._tallies.get(context)
        if tally is None:
            counts = self.counts[context]
            sums = np.zeros(len(self.names))
            for row, count in counts.items():
                sums[self._places[row]] += count
            tally = (counts.total(), len(counts), sums)
            if tally[0] >= OFTEN:
                self._tallies[context] = tally
        return tally

    def contexts(self, word: str) -> list[Context]:
        """Return the contexts for a guess. The word's kind in the other source is used if another known word has it."""
        kind = self.kinds.get(word, "")
        others = self.counts.get((kind, ""), Counter()).total() - (word in self.rows) if kind else 0
        return contexts(word, kind if others else "")

    def shares(self, word: str) -> np.ndarray:
        """Return p(f | the word's longest context with other words), without the word itself: (F,)."""
        row = self.rows.get(word)
        p = np.zeros(len(self.names))
        for context in self.contexts(word):
            if context not in self.counts:
                break
            n, t, n_f = self._tally(context)
            if row is not None:
                n, t, n_f = n - 1, t - (self.counts[context][row] == 1), n_f.copy()
                n_f[self._places[row]] -= 1
            if n == 0:
                break
            p = n_f / n if context == EVERYWHERE else (n_f + t * p) / (n + t)
        return p

    def guess(self, word: str) -> dict[str, float]:
        """Return the features of a word, guessed without its own entry."""
        if word in self.rows:
            return self._guess(word)
        contexts = [context for context in self.contexts(word) if context in self.counts]
        if contexts[-1] not in self._guesses:
            self._guesses[contexts[-1]] = self._guess(word)
        return self._guesses[contexts[-1]]

    def _guess(self, word: str) -> dict[str, float]:
        quarters = np.floor(self.shares(word) * STEPS + 0.5) / STEPS
        chosen = np.flatnonzero(quarters)
        return {self.names[i]: float(quarters[i] * self.means[i]) for i in chosen}

    def accuracy(self, words: Iterable[str]) -> dict[str, float]:
        """Return the share of these known words that is guessed right without their entries: WHOLE, and by group of
        features.

        A feature is guessed if its share is at least one half.
        """
        group_of = np.array(list(map(feature_group, self.names)))
        num_right: Counter[str] = Counter()
        num_words = 0
        for word in words:
            gold = np.zeros(len(self.names), dtype=bool)
            gold[self._places[self.rows[word]]] = True
            wrong = set(group_of[(self.shares(word) >= 0.5) != gold].tolist())
            num_right.update(set(self.groups) - wrong)
            num_right[WHOLE] += not wrong
            num_words += 1
        return {group: num_right[group] / num_words for group in (WHOLE, *self.groups)} if num_words else {}
