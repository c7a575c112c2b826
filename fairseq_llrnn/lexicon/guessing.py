"""Features of words guessed from their spelling.

Sizes: F features, G groups of features, n known words, m words to guess. Time O((n + m) · contexts), memory O(min(n, m)
· contexts): all new words with the same longest known contexts share one guess, which is computed once.

A `Guesser` has counted the features of other words. A word's ending determines most of its morphology in many
languages, and longer endings determine more. A word has contexts e₀ (nothing), e₁, e₂, … (its kind, its last letter,
its last two, …). The share of words with feature f is estimated from the general to the specific context, as Witten &
Bell (1991) do for n-grams and TnT (Brants 2000, section 2.3) for tags by suffix:

    p(f | e₀) = n(f, e₀) / n(e₀)
    p(f | e_k) = ( n(f, e_k) + t(e_k) · p(f | e_{k−1}) ) / ( n(e_k) + t(e_k) )

n counts word types: unseen words resemble rare ones, and most types are rare. t(e) is the number of different analyses
(sets of features) of the words of e. If it is large, the ending determines little. For known words, n and t exclude the
word itself (leave-one-out), so that it is guessed as if it were new.

The beginning of a word determines some features: the mutation of a Welsh word, the noun class of a Swahili one. For
each group of features, `with_best_edges` takes contexts of beginnings (the first letter, the first two, …) instead of
those of endings, if they are right for more known words. The estimate is the same.

A guess is p, rounded to quarters without zeros (so that signatures stay few), times the mean value of f in words that
have it. The mean is 1 for all but real-valued features. So the possible analyses of a word's edge share the word.

If another source has analyses of many words, known and new ones (a package together with a treebank), they are used as
the kind of a word. Its edges are then compared with those of words with the same analyses: the possible forms, weighed
by the known words, in the features of the known words. Analyses that no other known word has are ignored.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fairseq_llrnn.lexicon.features import feature_group

LONGEST_EDGE = 6  # letters
WHOLE = "whole analysis"
STEPS = 4  # shares are rounded to quarters
OFTEN = 32  # least number of a context's words to cache its sums
SURE = 3.0  # least gain of beginnings over endings, in standard deviations (sign test)
CAPITAL, NUMBER, SYMBOL = "capital", "number", "symbol"
Row = frozenset[str]
Context = tuple[str, str]
EVERYWHERE: Context = ("", "")


def kind_of(word: str) -> str:
    """Return the kind of a word's characters: `number`, `symbol`, `capital`, or "" for all else."""
    if not any(unicodedata.category(character)[0] in "LM" for character in word):
        return NUMBER if any(map(str.isdigit, word)) else SYMBOL
    return CAPITAL if word[:1].isupper() or word[:1].istitle() else ""


def endings(word: str) -> list[str]:
    """Return the ends of a word, the shortest first. `^` marks its beginning."""
    spelt = "^" + word
    return [spelt[-length:] for length in range(1, min(LONGEST_EDGE, len(spelt)) + 1)]


def beginnings(word: str) -> list[str]:
    """Return the beginnings of a word, the shortest first. `$` marks its end."""
    spelt = word + "$"
    return [spelt[:length] for length in range(1, min(LONGEST_EDGE, len(spelt)) + 1)]


def contexts(word: str, kind: str = "", edges: Callable[[str], list[str]] = endings) -> list[Context]:
    """Return a word's kind and edges, from general to specific. Digits are treated alike.

    Args:
        kind: its kind, instead of that of its characters.
    """
    spelt = "".join("0" if character.isdigit() else character for character in word.lower())
    kind = kind or kind_of(word)
    return [EVERYWHERE, *([(kind, "")] if kind else []), *((kind, edge) for edge in edges(spelt))]


@dataclass(frozen=True)
class EdgeCounts:
    """Counts of the rows of known words by their endings, or by their beginnings."""

    edges: Callable[[str], list[str]]
    places: Mapping[Row, np.ndarray]  # the numbers of the features of each row
    num_features: int
    rows: Mapping[str, Row]  # of the counted words
    kinds: Mapping[str, str]  # kinds of words by their analyses in another source
    counts: Mapping[Context, Counter[Row]]  # n(row, e)
    _tallies: dict[Context, tuple[int, int, np.ndarray]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def count(
        cls, edges: Callable[[str], list[str]], places: Mapping[Row, np.ndarray], num_features: int,
        rows: Mapping[str, Row], kinds: Mapping[str, str], asked: Collection[str],
    ) -> EdgeCounts:  # fmt: skip
        """Count the contexts of all rows. If the words to guess (`asked`) are few, only their contexts are kept."""

        def all_contexts(word: str) -> list[Context]:
            in_kind = contexts(word, kinds[word], edges)[1:] if word in kinds else []
            return contexts(word, edges=edges) + in_kind

        needed = {context for word in asked for context in all_contexts(word)} if len(asked) < len(rows) else None
        counts: defaultdict[Context, Counter[Row]] = defaultdict(Counter)
        for word, row in rows.items():
            for context in all_contexts(word):
                if needed is None or context in needed:
                    counts[context][row] += 1
        return cls(edges, places, num_features, rows, kinds, dict(counts))

    def _tally(self, context: Context) -> tuple[int, int, np.ndarray]:
        """Return n(e), t(e), and n(f, e) for all features: (F,)."""
        tally = self._tallies.get(context)
        if tally is None:
            counts = self.counts[context]
            sums = np.zeros(self.num_features)
            for row, count in counts.items():
                sums[self.places[row]] += count
            tally = (counts.total(), len(counts), sums)
            if tally[0] >= OFTEN:
                self._tallies[context] = tally
        return tally

    def contexts(self, word: str) -> list[Context]:
        """Return the contexts for a guess that other words have. The word's kind in the other source is used if another
        known word has it.
        """
        kind = self.kinds.get(word, "")
        others = self.counts.get((kind, ""), Counter()).total() - (word in self.rows) if kind else 0
        found = contexts(word, kind if others else "", self.edges)
        return [context for context in found if context in self.counts]

    def shares(self, word: str) -> np.ndarray:
        """Return p(f | the word's longest context with other words), without the word itself: (F,)."""
        row = self.rows.get(word)
        p = np.zeros(self.num_features)
        for context in self.contexts(word):
            n, t, n_f = self._tally(context)
            if row is not None:
                n, t, n_f = n - 1, t - (self.counts[context][row] == 1), n_f.copy()
                n_f[self.places[row]] -= 1
            if n == 0:
                break
            p = n_f / n if context == EVERYWHERE else (n_f + t * p) / (n + t)
        return p


@dataclass(frozen=True)
class Guesser:
    """Counts of features by the endings and beginnings of known words."""

    names: tuple[str, ...]  # F, in alphabetical order
    means: np.ndarray  # (F,) mean value of each feature in words that have it
    by_ending: EdgeCounts
    by_beginning: EdgeCounts
    groups_by_beginning: frozenset[str] = frozenset()  # guessed from beginnings; all others from endings
    _guesses: dict[tuple[Context, ...], dict[str, float]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def train(
        cls, lexicon: Mapping[str, Mapping[str, float]], asked: Collection[str], kinds: Mapping[str, str] | None = None
    ) -> Guesser:
        """Count the endings and beginnings of the words of a lexicon. Guesses use the endings.

        Args:
            lexicon: features by word, each word once whatever its frequency; at least one word.
            asked: words to guess. If they are few, only their contexts are kept.
            kinds: of known words and words to guess, by their analyses in another source.
        """
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
        names = tuple(sorted(num_words))
        means = np.array([totals[name] / num_words[name] for name in names])
        number = {name: i for i, name in enumerate(names)}
        places = {row: np.array(sorted(number[f] for f in row), dtype=np.int64) for row in shared_rows}
        by_ending, by_beginning = (
            EdgeCounts.count(edges, places, len(names), rows, kinds or {}, asked) for edges in (endings, beginnings)
        )
        return cls(names, means, by_ending, by_beginning)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The G groups of all features, in alphabetical order."""
        return tuple(sorted(set(map(feature_group, self.names))))

    @cached_property
    def _group_of(self) -> np.ndarray:
        """The number of each feature's group: (F,)."""
        number = {group: i for i, group in enumerate(self.groups)}
        return np.array([number[feature_group(name)] for name in self.names], dtype=np.int64)

    @cached_property
    def _reads_beginning(self) -> np.ndarray:
        """Whether each feature is guessed from beginnings: (F,)."""
        return np.array([group in self.groups_by_beginning for group in self.groups], dtype=bool)[self._group_of]

    def shares(self, word: str) -> np.ndarray:
        """Return p(f) of a word, without its own entry: (F,)."""
        p = self.by_ending.shares(word)
        return np.where(self._reads_beginning, self.by_beginning.shares(word), p) if self.groups_by_beginning else p

    def guess(self, word: str) -> dict[str, float]:
        """Return the features of a word, guessed without its own entry."""
        if word in self.by_ending.rows:
            return self._guess(word)
        used = (self.by_ending, self.by_beginning) if self.groups_by_beginning else (self.by_ending,)
        longest = tuple(counts.contexts(word)[-1] for counts in used)
        if longest not in self._guesses:
            self._guesses[longest] = self._guess(word)
        return self._guesses[longest]

    def _guess(self, word: str) -> dict[str, float]:
        quarters = np.floor(self.shares(word) * STEPS + 0.5) / STEPS
        chosen = np.flatnonzero(quarters)
        return {self.names[i]: float(quarters[i] * self.means[i]) for i in chosen}

    def _is_right(self, words: Collection[str]) -> np.ndarray:
        """Return which groups of known words are guessed right without their entries: (words, G).

        A feature is guessed if its share is at least one half.
        """
        is_right = np.ones((len(words), len(self.groups)), dtype=bool)
        for i, word in enumerate(words):
            is_wrong = self.shares(word) >= 0.5
            place = self.by_ending.places[self.by_ending.rows[word]]
            is_wrong[place] = ~is_wrong[place]
            is_right[i, self._group_of[is_wrong]] = False
        return is_right

    def with_best_edges(self, words: Collection[str]) -> tuple[Guesser, dict[str, float]]:
        """Return a guesser that takes the better edge for each group of features, and its accuracy, tested on known
        words.

        Beginnings are taken if the gain is significant and the share of words with all features right is not lower. The
        accuracy is the share of words that are guessed right without their entries: WHOLE, and by group of features.
        """
        if not words:
            return self, {}
        by_ending = self._is_right(words)
        by_beginning = replace(self, groups_by_beginning=frozenset(self.groups))._is_right(words)
        better, worse = (by_beginning & ~by_ending).sum(0), (by_ending & ~by_beginning).sum(0)
        is_chosen = better - worse > SURE * np.sqrt(better + worse)
        is_right = np.where(is_chosen, by_beginning, by_ending)
        if is_right.all(1).sum() < by_ending.all(1).sum():
            is_chosen[:], is_right = False, by_ending
        chosen = frozenset(group for group, is_better in zip(self.groups, is_chosen, strict=True) if is_better)
        by_group = dict(zip(self.groups, is_right.mean(0).tolist(), strict=True))
        return replace(self, groups_by_beginning=chosen), {WHOLE: float(is_right.all(1).mean()), **by_group}
