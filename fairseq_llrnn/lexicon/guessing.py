"""Features of words from their spelling: guesses by those of other words, and features of morphemes.

Sizes: F features, n known words, m words that are asked for. Time O((n + m) · contexts), memory O(min(n, m) ·
contexts): all new words whose longest known ending is the same have the same guess, which is made once.

A `Guesser` has seen the features of other words. A word's ending says most of its morphology, and the longer the
ending, the more. Of a word with contexts e₀ (nothing), e₁, e₂, … (its kind, its last letter, its last two, …), the
share of words that have feature f is estimated from the general to the special, as Witten & Bell (1991) do for
n-grams and TnT (Brants 2000, section 2.3) for tags by suffix:

    p(f | e₀) = n(f, e₀) / n(e₀)
    p(f | e_k) = ( n(f, e_k) + t(e_k) · p(f | e_{k−1}) ) / ( n(e_k) + t(e_k) )

n counts word types: rare words resemble those that nobody has seen, and among types the rare ones are many. t(e) is how
many different analyses (sets of features) the words of e have: many, and the ending says little. For the words
themselves, n and t are taken without them (leave-one-out), so that they are guessed as if they were new.

A guess is p, in quarters, what rounds to nothing left out (so signatures stay few), times the mean value of f where
words have it, which is 1 for all but real-valued features. So several analyses that an ending can have share the word.

Where another source has analyses of many words, known and new ones (a package beside a treebank), they are a word's
kind, so that its endings are compared with those of words with the same analyses: what a form can be, weighed by what
the known words are, and told in their features. Analyses that no other known word has say nothing.

Morphemes are features, each with its place: `Prefix:un`, `Stem:happy`, `Ending:ness`. A *segmentation* is a word cut
into segments. Its stem is the longest one; of several, the one that fewer words have, then the first. What stands
before it are prefixes, what stands behind it endings. (The group `Suffix` is that of features/spelling.py: letters at
the end of a word, whoever cut it.) A word with several segmentations has the features of all, as a form with several
analyses has; a morpheme that stands twice in the same place counts once. So, if the network reads a word by its
identity and by these features, it reads x_k + Σ_{j ∈ M_k} m_j (Jernite 2018, eq. 2.7; Botha & Blunsom 2014).

Morphemes that few words have are left out: they would name words, not a class, and with each of them a word would
leave its signature. Pooled, as one feature for each place, they would make more signatures than they save, and a worse
model (docs/results/language-models.md).
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairseq_llrnn.lexicon.features import feature_group

LONGEST_SUFFIX = 6
WHOLE = "whole analysis"
STEPS = 4  # a share is told in quarters
OFTEN = 32  # words of a context from which on its sums are kept: one with fewer is quickly summed again
CAPITAL, NUMBER, SYMBOL = "capital", "number", "symbol"
Row = frozenset[str]
Context = tuple[str, str]
EVERYWHERE: Context = ("", "")


def kind_of(word: str) -> str:
    """What a word's characters are, beside its ending: `number`, `symbol`, `capital`, or "" for all else."""
    if not any(unicodedata.category(character)[0] in "LM" for character in word):
        return NUMBER if any(map(str.isdigit, word)) else SYMBOL
    return CAPITAL if word[:1].isupper() or word[:1].istitle() else ""


def contexts(word: str, kind: str = "") -> list[Context]:
    """Kind and ending, from the general to the special. Digits are alike, and `^` is where a short word begins.

    Args:
        kind: its kind, in the place of that of its characters.
    """
    spelt = "^" + "".join("0" if character.isdigit() else character for character in word.lower())
    kind = kind or kind_of(word)
    suffixes = [(kind, spelt[-length:]) for length in range(1, min(LONGEST_SUFFIX, len(spelt)) + 1)]
    return [EVERYWHERE, (kind, ""), *suffixes] if kind else [EVERYWHERE, *suffixes]


@dataclass(frozen=True)
class Guesser:
    """What the endings of known words say of features."""

    names: tuple[str, ...]  # F, in alphabetical order
    means: np.ndarray  # (F,) mean value of a feature where a word has it
    rows: Mapping[str, Row]  # of the words that were counted
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
            asked: words that will be guessed: if they are few, only their endings are kept.
            kinds: of these words and of those that are asked for, by their analyses in another source.
        """
        kinds = kinds or {}

        def all_contexts(word: str) -> list[Context]:
            return contexts(word) + (contexts(word, kinds[word])[1:] if word in kinds else [])

        totals: defaultdict[str, float] = defaultdict(float)
        having: Counter[str] = Counter()
        rows: dict[str, Row] = {}
        same: dict[Row, Row] = {}
        for word, features in lexicon.items():
            row = frozenset(name for name, value in features.items() if value != 0.0)
            rows[word] = same.setdefault(row, row)
            for name in rows[word]:
                totals[name] += features[name]
                having[name] += 1
        wanted = {context for word in asked for context in all_contexts(word)} if len(asked) < len(rows) else None
        counts: defaultdict[Context, Counter[Row]] = defaultdict(Counter)
        for word, row in rows.items():
            for context in all_contexts(word):
                if wanted is None or context in wanted:
                    counts[context][row] += 1
        names = tuple(sorted(having))
        means = np.array([totals[name] / having[name] for name in names])
        return cls(names, means, rows, dict(counts), kinds)

    @cached_property
    def _places(self) -> dict[Row, np.ndarray]:
        """The numbers of the features of a row."""
        number = {name: i for i, name in enumerate(self.names)}
        return {row: np.array(sorted(number[f] for f in row), dtype=np.int64) for row in set(self.rows.values())}

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups of all features, in alphabetical order."""
        return tuple(sorted(set(map(feature_group, self.names))))

    def _tally(self, context: Context) -> tuple[int, int, np.ndarray]:
        """n(e), t(e), and n(f, e) for all features: (F,)."""
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
        """Those by which a word is guessed: with its kind in the other source, if another known word is of it."""
        kind = self.kinds.get(word, "")
        others = self.counts.get((kind, ""), Counter()).total() - (word in self.rows) if kind else 0
        return contexts(word, kind if others else "")

    def shares(self, word: str) -> np.ndarray:
        """p(f | the word's longest context that others have), without the word itself: (F,)."""
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
        """The word's features; those of a known word as if it were new."""
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
        """How many of these known words are guessed right, as if they were new; WHOLE, and by group of features.

        A feature is guessed if its share is at least one half.
        """
        group_of = np.array(list(map(feature_group, self.names)))
        right: Counter[str] = Counter()
        many = 0
        for word in words:
            gold = np.zeros(len(self.names), dtype=bool)
            gold[self._places[self.rows[word]]] = True
            wrong = set(group_of[(self.shares(word) >= 0.5) != gold].tolist())
            right.update(set(self.groups) - wrong)
            right[WHOLE] += not wrong
            many += 1
        return {group: right[group] / many for group in (WHOLE, *self.groups)} if many else {}


PREFIX, STEM, ENDING = GROUPS = ("Prefix", "Stem", "Ending")
MORPHEME_FLOOR = 50
Segmentation = tuple[str, ...]
Segmentations = Mapping[str, Sequence[Segmentation]]  # by word; several where tools, or rows of a file, differ


def has_morphemes(word: str) -> bool:
    """Whether there is a letter in it: numbers and punctuation have none."""
    return kind_of(word) not in (NUMBER, SYMBOL)


def place_of_stem(segments: Sequence[str], types: Mapping[str, int]) -> int:
    """Which of the segments is the stem.

    Args:
        types: how many words have each segment, wherever it stands.
    """
    return min(range(len(segments)), key=lambda i: (-len(segments[i]), types[segments[i]], i))


def morpheme_names(segments: Sequence[str], types: Mapping[str, int]) -> list[str]:
    """The names of the features of a segmentation, lower-cased, in its order."""
    stem = place_of_stem(segments, types)
    groups = (PREFIX if i < stem else STEM if i == stem else ENDING for i in range(len(segments)))
    return [f"{group}:{segment.lower()}" for group, segment in zip(groups, segments, strict=True)]


def morpheme_features(
    words: Iterable[str], segmentations: Segmentations, floor: int, shown: Collection[str] | None = None
) -> dict[str, dict[str, float]]:
    """The features of each of the words that has a letter; the whole word is the stem of those without a segmentation.

    Args:
        floor: how many words must have a morpheme, for it to be a feature. shown: the words that are counted for that,
            those of the training text; None: all.
    """
    cut = {word: segmentations.get(word) or [(word,)] for word in dict.fromkeys(words) if has_morphemes(word)}
    types = Counter(segment for several in cut.values() for segment in {s for one in several for s in one})
    names = {word: {name for one in several for name in morpheme_names(one, types)} for word, several in cut.items()}
    counted = cut if shown is None else cut.keys() & set(shown)
    having = Counter(name for word in counted for name in names[word])
    return {word: {name: 1.0 for name in sorted(its) if having[name] >= floor} for word, its in names.items()}
