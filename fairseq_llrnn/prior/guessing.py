"""Completes a lexicon for a dictionary: analyses that it lacks are guessed from spelling (lexicon/guessing.py).

A treebank of the training text knows every word of that text and none that it lacks. Then unseen words alone are
without analyses, and a model learns that such words never come. So they are guessed; and because a guess is not an
analysis, the model has to meet guesses in training as often as in use. Words that training shows once are as many
tokens as the unseen ones of a new text (Good 1953, with Turing), and of the same kind. Of them, the same part is
guessed as of the words that training lacks, each as if nobody knew it (leave-one-out); more frequent words keep their
analyses.

Analyses of a package (`--language`) beside a treebank that knows the text better are not united with the treebank's: it
lists all readings that a form can have, where the treebank has those that occur, so that words that are alike in the
one are not in the other, and the model meets more signatures and predicts them worse. They say what kind a word is of
(lexicon/guessing.py), if known words are then guessed better; if not, they are left out.

Sizes: V words of the dictionary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairseq_llrnn import defaults
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.guessing import WHOLE, Guesser

MODES = defaults.GUESSING
RARE = 10  # words that are more frequent say little of unseen ones (Brants 2000)
UNITED, KINDS, LEFT_OUT = "united", "kinds", "left out"
TESTED = 5000  # words at most that the accuracy is of


@dataclass(frozen=True)
class Coverage:
    """Words of the dictionary, and those of them that the lexicon has."""

    text: tuple[int, int]  # (covered, all) of the words of the counted text
    others: tuple[int, int]  # of all others

    @property
    def differs(self) -> bool:
        """Whether the lexicon covers the text's words better than the others."""
        return self.text[0] * self.others[1] > self.others[0] * self.text[1]


@dataclass(frozen=True)
class Completed:
    """A lexicon that knows every word."""

    lexicon: Lexicon
    coverage: Coverage
    guessed: np.ndarray  # (V,) bool
    groups: tuple[str, ...] = ()  # of the features that are guessed
    accuracy: Mapping[str, float] = field(default_factory=dict)  # of known words as if new: WHOLE, and by group
    added: int = 0  # words that the lexicon has from guesses alone
    crossed: int = 0  # guessed words of the dictionary that have analyses
    package: str | None = None  # what became of a package's analyses: UNITED, KINDS or LEFT_OUT; None: there are none
    without: float | None = None  # of accuracy, WHOLE: what it would be without them, or, where they are LEFT_OUT, with


def complete(
    lexicon: Lexicon,
    words: WordList,
    counts: np.ndarray,
    ordinary: np.ndarray,
    mode: str = "auto",
    others: Iterable[str] = (),
    package: Lexicon | None = None,
) -> Completed:
    """The lexicon with guesses; the lexicon itself where nothing is to be guessed.

    Args:
        counts: (V,) of the words in the text that training shows. ordinary: (V,) bool, words that have analyses.
        mode: of MODES; "auto": guess if the coverage differs. others: words outside the dictionary that need analyses.
        package: what a package knows of the words.
    """
    others, became = list(others), None
    if package is not None and len(package):
        text = [symbol for symbol, count in zip(words.symbols, counts.tolist(), strict=True) if count] + others
        is_less = sum(word in package for word in text) < sum(word in lexicon for word in text)
        became = LEFT_OUT if is_less and mode != "off" else UNITED
    if package is not None and became == UNITED:
        lexicon.update(package)
    rows = {word: row for word in lexicon if any((row := lexicon.features(word)).values())}
    known = np.array([word in rows for word in words.symbols]) & ordinary
    shown = counts > 0
    coverage = Coverage(_covered(known, ordinary & shown), _covered(known, ordinary & ~shown))
    if mode == "off" or not rows or (mode == "auto" and not coverage.differs):
        return Completed(lexicon, coverage, np.zeros(len(words), dtype=bool), package=became)
    lacking = ordinary & ~known
    crossed = _crossed(words.symbols, ordinary & (counts == 1), known, coverage)
    asked = [words.symbols[i] for i in (*np.flatnonzero(lacking), *crossed)]
    asked += sorted(set(others) - rows.keys() - set(asked))
    tested = _tested(words.symbols, known, counts)
    often = {words.symbols[i] for i in np.flatnonzero(ordinary & (counts > RARE))}
    rare = {word: row for word, row in rows.items() if word not in often} or rows
    guesser = Guesser.train(rare, [*asked, *tested])
    known_rare = [word for word in tested if word in rare]
    accuracy, without = guesser.accuracy(known_rare), None
    if package is not None and became == LEFT_OUT and known_rare:
        with_kinds = Guesser.train(rare, [*asked, *tested], {w: " ".join(sorted(package.features(w))) for w in package})
        of_kinds = with_kinds.accuracy(known_rare)
        without = of_kinds[WHOLE]
        if of_kinds[WHOLE] > accuracy[WHOLE]:
            guesser, accuracy, without, became = with_kinds, of_kinds, accuracy[WHOLE], KINDS
    guesses = {word: guesser.guess(word) for word in asked}
    completed = Lexicon()
    for word in dict.fromkeys((*lexicon, *guesses)):
        completed.add(word, guesses[word] if word in guesses else lexicon.features(word))
    completed.notes.update(lexicon.notes)
    guessed = lacking.copy()
    guessed[crossed] = True
    added = len(completed) - len(lexicon)
    return Completed(completed, coverage, guessed, guesser.groups, accuracy, added, len(crossed), became, without)


def _covered(known: np.ndarray, words: np.ndarray) -> tuple[int, int]:
    return int((known & words).sum()), int(words.sum())


def _crossed(symbols: Sequence[str], once: np.ndarray, known: np.ndarray, coverage: Coverage) -> np.ndarray:
    """Known words of those shown `once` (V,), so many that the lexicon covers the others as it covers unseen words.

    Which ones depends on their spelling alone, not on their order.
    """
    covered, every = coverage.others
    ranked = sorted(np.flatnonzero(once & known), key=lambda i: hashlib.sha256(symbols[i].encode()).digest())
    keep = round(int(once.sum()) * covered / every) if every else len(ranked)
    return np.array(sorted(ranked[keep:]), dtype=np.int64)


def _tested(symbols: Sequence[str], known: np.ndarray, counts: np.ndarray) -> list[str]:
    """The rarest of the known words that training shows, or, where there are none, known words."""
    shown = np.flatnonzero(known & (counts > 0))
    chosen = shown if len(shown) else np.flatnonzero(known)
    return [symbols[i] for i in chosen[np.argsort(counts[chosen], kind="stable")][:TESTED]]
