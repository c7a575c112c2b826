"""Completes a table for the words of a text: analyses that it lacks are guessed from spelling (guessing.py).

A treebank of the training text contains every word of that text and no unseen word. Then only unseen words would lack
analyses, and a model would learn that such words never occur. So their features are guessed. Since guesses differ from
analyses, training must contain guesses as often as use does. Words that training contains once are about as many tokens
as the unseen ones of a new text (Good 1953, with Turing), and of the same kind. Of them, the same share is guessed as
of the words that training lacks, each without its own entry (leave-one-out). More frequent words keep their analyses.

If a treebank covers the text better than a package (`--language`), their analyses are not merged. The package lists all
possible readings of a form, the treebank those that occur, so similar words would get different features: there would
be more signatures, and worse predictions. Instead, the package's analyses define the kinds of words (guessing.py) if
guesses for known words improve. Otherwise they are left out.

Sizes: V words of the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.guessing import WHOLE, Guesser
from fairseq_llrnn.lexicon.held_out import HeldOut
from fairseq_llrnn.lexicon.languages.language_source import SOURCES
from fairseq_llrnn.lexicon.lexicon_table import GUESS, Completed, Coverage, Row, Table, as_features

RARE = 10  # largest count of words that guesses are learned from (Brants 2000)
UNITED, KINDS, LEFT_OUT = "united", "kinds", "left out"
TESTED = 5000  # most words for the accuracy


@dataclass(frozen=True)
class TextWords:
    """The words of a text, to look up in a table."""

    counts: Mapping[str, int]  # in the text, of the words of its dictionary, in their order
    others: Collection[str] = ()  # more words that need analyses
    held_out: HeldOut = field(default_factory=HeldOut)  # sentences that no treebank should contain

    @property
    def shown(self) -> list[str]:
        """The words of the dictionary that the text contains, or all words if it contains none."""
        return [word for word, count in self.counts.items() if count] or list(self.counts or self.others)


def of_package(row: Row) -> bool:
    """Return whether an analysis comes from a package of languages."""
    return row.source.partition(":")[0] in SOURCES


def complete(table: Table, text: TextWords, mode: str = "auto") -> None:
    """Add guesses to a table, and set `table.completed`. Analyses of packages may be left out.

    Args:
        mode: "auto": guess if the coverage differs; "off": also leave guesses of the table out.
    """
    words, others, use = list(text.counts), list(text.others), None
    counts = np.array([text.counts[word] for word in words], dtype=np.int64)
    if mode == "off":
        table.rows = {row: count for row, count in table.rows.items() if row.source != GUESS}
    before = table.only(lambda row: row.source == GUESS).lexicon()
    lexicon = table.only(lambda row: row.source != GUESS and not of_package(row)).lexicon(values=False)
    package = table.only(of_package).lexicon(values=False)
    if len(package):
        to_guess = [word for word, count in text.counts.items() if count] + others
        covers_less = sum(word in package for word in to_guess) < sum(word in lexicon for word in to_guess)
        use = LEFT_OUT if covers_less and mode != "off" else UNITED
        if use == UNITED:
            lexicon.update(package)
        else:
            table.rows = {row: count for row, count in table.rows.items() if not (of_package(row) and row.features)}
    rows = {word: row for word in lexicon if any((row := lexicon.features(word)).values())}
    in_lexicon = np.array([word in rows for word in words], dtype=bool)
    shown = counts > 0
    coverage = Coverage(_count_covered(in_lexicon, shown), _count_covered(in_lexicon, ~shown))
    has_features = in_lexicon | np.array([word in before for word in words], dtype=bool)
    differs = Coverage(_count_covered(has_features, shown), _count_covered(has_features, ~shown)).differs
    listed = frozenset(word for word in words if word in before)
    table.completed = Completed(coverage, len(lexicon), listed, package=use)
    if listed:
        groups = {feature_group(name) for word in before for name in before.features(word)}
        added = sum(word not in lexicon for word in before)
        crossed = sum(word in lexicon for word in listed)
        table.completed = replace(table.completed, groups=tuple(sorted(groups)), added=added, crossed=crossed)
    if mode == "off" or not rows or (mode == "auto" and not differs):
        return
    crossed_words = () if listed else _choose_crossed(words, counts == 1, in_lexicon, coverage)
    missing = [word for word, is_known in zip(words, has_features, strict=True) if not is_known]
    to_guess = [*missing, *(words[i] for i in crossed_words)]
    to_guess += sorted(set(others) - rows.keys() - set(before) - set(to_guess))
    tested = _choose_tested(words, in_lexicon, counts)
    frequent = {word for word, count in text.counts.items() if count > RARE}
    rare = {word: row for word, row in rows.items() if word not in frequent} or rows
    rare_words = [word for word in tested if word in rare]
    guesser, accuracy = Guesser.train(rare, [*to_guess, *tested]).with_best_edges(rare_words)
    without = None
    if use == LEFT_OUT and rare_words:
        kinds = {word: " ".join(sorted(package.features(word))) for word in package}
        with_kinds, by_kind = Guesser.train(rare, [*to_guess, *tested], kinds).with_best_edges(rare_words)
        without = by_kind[WHOLE]
        if by_kind[WHOLE] > accuracy[WHOLE]:
            guesser, accuracy, without, use = with_kinds, by_kind, accuracy[WHOLE], KINDS
    for word in to_guess:
        table.add(Row(word, "", as_features(guesser.guess(word)), GUESS, True))
    table.completed = replace(
        table.completed, guessed=listed | set(missing) | {words[i] for i in crossed_words}, groups=guesser.groups,
        beginnings=tuple(sorted(guesser.groups_by_beginning)), accuracy=accuracy,
        added=table.completed.added + sum(word not in lexicon for word in to_guess),
        crossed=table.completed.crossed + len(crossed_words), package=use, without=without,
    )  # fmt: skip


def _count_covered(in_lexicon: np.ndarray, words: np.ndarray) -> tuple[int, int]:
    return int((in_lexicon & words).sum()), int(words.sum())


def _choose_crossed(symbols: Sequence[str], once: np.ndarray, in_lexicon: np.ndarray, coverage: Coverage) -> np.ndarray:
    """Return words among those that occur `once` (V,) to guess, so that the rest is covered like unseen words.

    The choice depends only on their spelling, not on their order.
    """
    covered, total = coverage.others
    ranked = sorted(np.flatnonzero(once & in_lexicon), key=lambda i: hashlib.sha256(symbols[i].encode()).digest())
    keep = round(int(once.sum()) * covered / total) if total else len(ranked)
    return np.array(sorted(ranked[keep:]), dtype=np.int64)


def _choose_tested(symbols: Sequence[str], in_lexicon: np.ndarray, counts: np.ndarray) -> list[str]:
    """Return the rarest known words that training contains, or else any known words."""
    in_text = np.flatnonzero(in_lexicon & (counts > 0))
    chosen = in_text if len(in_text) else np.flatnonzero(in_lexicon)
    return [symbols[i] for i in chosen[np.argsort(counts[chosen], kind="stable")][:TESTED]]
