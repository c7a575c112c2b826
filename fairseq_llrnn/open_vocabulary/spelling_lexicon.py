"""The lexicon of an open vocabulary: distributions over the words of lists and dictionaries.

Sizes: K distributions, O classes, n strings.

The lexicon is a part of each class's mixture (number_strings.py), with the share λ_ko of distribution k:

    P_o(w)  =  Σ_k λ_ko P_k(w | o)  +  (1 − Σ_k λ_ko) (numbers and characters)

    list         the words of a file (listed_strings.py), or these words with a capital
    compounds    of the words of all files (compounds.py)
    affixes      the forms of a hunspell dictionary (affixed_strings.py)
    capitalised  the distribution before, with a capital at the beginning of each string (capitalised.py)

Lists and affixes have the words that fit a class. Compounds are the same in all classes. lexicon_weights.py estimates
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from fairseq_llrnn.files.numbers import is_weight
from fairseq_llrnn.open_vocabulary.affixed_strings import AffixedByClass
from fairseq_llrnn.open_vocabulary.capitalised import Capitalised, StringDistribution
from fairseq_llrnn.open_vocabulary.compounds import Compounds
from fairseq_llrnn.open_vocabulary.listed_strings import LEAST_TOTAL, ListedByClass, ListedStrings
from fairseq_llrnn.open_vocabulary.spelling_classes import SpellingClasses
from fairseq_llrnn.open_vocabulary.stored_grammar import as_bytes, read_grammar

SEPARATOR = "\n"  # of stored strings
LARGEST_WEIGHT = 100.0
# kinds, as stored
BY_CLASS = " by class"
LIST, AFFIXES, COMPOUNDS, CAPITALISED = f"list{BY_CLASS}", f"affixes{BY_CLASS}", "compounds", "capitalised"
KINDS: dict[type, str] = {ListedByClass: LIST, AffixedByClass: AFFIXES, Compounds: COMPOUNDS, Capitalised: CAPITALISED}
ReadRow = Callable[[str, type, "int | None"], np.ndarray]


@dataclass(frozen=True)
class SpellingLexicon:
    """K distributions over strings, and their shares in the classes (module docstring)."""

    parts: tuple[StringDistribution, ...]  # K
    shares: np.ndarray  # (K, O) float64, λ

    @cached_property
    def log_rest(self) -> np.ndarray:
        """log(1 − Σ_k λ_ko): (O,)."""
        rest: np.ndarray = np.log1p(-self.shares.sum(0))
        return rest

    def probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return Σ_k λ_ko P_k(w | o) of each string: (n, O) float64."""
        found = np.zeros((len(strings), self.shares.shape[1]))
        for part, shares in zip(self.parts, self.shares, strict=True):
            found += by_class(part, strings) * shares
        return found

    def draw(self, of_class: int, count: int, random: np.random.Generator) -> list[str]:
        """Return those of `count` samples of a class that come from the lexicon, a random number of strings."""
        shares = self.shares[:, of_class]
        numbers = random.multinomial(count, np.append(shares, max(0.0, 1.0 - shares.sum())))[:-1]
        pairs = zip(self.parts, numbers.tolist(), strict=True)
        return [string for part, number in pairs for string in part.draw(number, random, of_class)]

    def lines(self, log_class_shares: np.ndarray) -> list[str]:
        """Return a line for each distribution with its mean share in the classes. log_class_shares: (O,)."""
        shares = (self.shares @ np.exp(log_class_shares)).tolist()
        lines = []
        for part, kind, share in zip(self.parts, self.kinds(), shares, strict=True):
            inner = part.parts if isinstance(part, Compounds) else part
            size = ""
            if isinstance(inner, ListedStrings):
                size = f" of {len(inner.strings):,} words"
            elif isinstance(inner, AffixedByClass):
                size = f" of {len(inner.grammar.entries):,} stems"
            lines.append(f"lexicon: {kind.removesuffix(BY_CLASS)}{size}, weight {share:.1%}")
        return lines

    def kinds(self) -> list[str]:
        """Return the kinds of the distributions, for the prior's JSON."""
        return [KINDS[type(part)] for part in self.parts]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for the prior."""
        arrays = {"lexicon_shares": self.shares.flatten()}
        for k, part in enumerate(self.parts):
            listed = part.parts if isinstance(part, Compounds) else part
            if isinstance(listed, ListedStrings):
                text = SEPARATOR.join(listed.strings).encode("utf-8")
                arrays |= {f"lexicon_{k}_text": np.frombuffer(text, dtype=np.uint8), f"lexicon_{k}_probs": listed.probs}
            elif isinstance(part, AffixedByClass):
                arrays |= {
                    f"lexicon_{k}_grammar": as_bytes(part.grammar),
                    f"lexicon_{k}_entries": part.entry_probs,
                    f"lexicon_{k}_moves": part.move_weights,
                    f"lexicon_{k}_fits": part.fits.flatten(),
                    f"lexicon_{k}_totals": part.totals,
                }
            if isinstance(part, ListedByClass):  # all lists have the same P(o | w)
                text = SEPARATOR.join(part.classes.features).encode("utf-8")
                arrays |= {
                    f"lexicon_{k}_totals": part.totals,
                    "lexicon_features": np.frombuffer(text, dtype=np.uint8),
                    "lexicon_weights": part.classes.weights.flatten(),
                }
        return arrays


def by_class(part: StringDistribution, strings: Sequence[str]) -> np.ndarray:
    """Return P(w | o) of each string: (n, O) float64, or (n, 1) if it is the same in all classes."""
    probs = part.string_probs(strings)
    return probs if probs.ndim == 2 else probs[:, None]


def read_spelling_lexicon(row: ReadRow, kinds: object, num_classes: int) -> SpellingLexicon:
    """Return the lexicon of a prior.

    Args:
        row: returns the array of a name, type and size, or raises ValueError.
        kinds: of the prior's JSON.

    Raises:
        ValueError, KeyError, TypeError: invalid arrays or kinds, which are untrusted input.
    """
    if not isinstance(kinds, list) or not kinds:
        raise ValueError("the spelling lexicon has no kinds")
    shares = row("lexicon_shares", np.float64, len(kinds) * num_classes).reshape(len(kinds), num_classes)
    if not (shares >= 0.0).all() or not (shares.sum(0) < 1.0).all():
        raise ValueError("the spelling lexicon has shares outside 0 … 1")
    classes = _read_classes(row, num_classes) if LIST in kinds else None
    parts = list[StringDistribution]()
    for k, kind in enumerate(kinds):
        if kind == COMPOUNDS:
            parts.append(Compounds(_read_list(row, k)))
        elif kind == LIST and classes is not None:
            listed = _read_list(row, k)
            parts.append(ListedByClass(listed.strings, listed.probs, classes, _read_totals(row, k, num_classes)))
        elif kind == AFFIXES:
            parts.append(_read_affixes(row, k, num_classes))
        elif kind == CAPITALISED and parts and not isinstance(parts[-1], Capitalised):
            parts.append(Capitalised(parts[-1]))
        else:
            raise ValueError(f"the spelling lexicon has an unknown kind, {kind!r:.40}")
    return SpellingLexicon(tuple(parts), shares)


def _read_list(row: ReadRow, k: int) -> ListedStrings:
    text, probs = row(f"lexicon_{k}_text", np.uint8, None), row(f"lexicon_{k}_probs", np.float64, None)
    strings = tuple(text.tobytes().decode("utf-8").split(SEPARATOR))  # UnicodeDecodeError is a ValueError
    if len(probs) != len(strings) or not all(first < second for first, second in pairwise(strings)) or not strings[0]:
        raise ValueError("the words of the spelling lexicon are not in ascending order, one for each probability")
    return ListedStrings(strings, _checked_probs(probs))


def _read_classes(row: ReadRow, num_classes: int) -> SpellingClasses:
    text = row("lexicon_features", np.uint8, None).tobytes().decode("utf-8")
    features = tuple(text.split(SEPARATOR)) if text else ()
    weights = row("lexicon_weights", np.float64, (len(features) + 1) * num_classes).reshape(-1, num_classes)
    if not (np.abs(weights) <= LARGEST_WEIGHT).all() or len({*features}) != len(features):
        raise ValueError("the classes of the spelling lexicon have weights outside the limits, or a feature twice")
    return SpellingClasses(features, weights)


def _read_totals(row: ReadRow, k: int, num_classes: int) -> np.ndarray:
    totals = row(f"lexicon_{k}_totals", np.float64, num_classes)
    if not (totals >= LEAST_TOTAL).all() or abs(totals.sum() - 1.0) > 1e-6:  # Σ_o Z_o = Σ_w P(w) Σ_o P(o | w)
        raise ValueError("the shares of the classes in the spelling lexicon are not above 0, or do not add up to one")
    return totals


def _read_affixes(row: ReadRow, k: int, num_classes: int) -> AffixedByClass:
    grammar = read_grammar(row(f"lexicon_{k}_grammar", np.uint8, None))
    entries = _checked_probs(row(f"lexicon_{k}_entries", np.float64, len(grammar.entries)))
    moves = row(f"lexicon_{k}_moves", np.float64, grammar.num_moves)
    if not all(map(is_weight, moves.tolist())):
        raise ValueError("the moves of the spelling lexicon have weights outside the limits")
    totals = _read_totals(row, k, num_classes)
    found = AffixedByClass(grammar, entries, moves, fits=np.zeros((0, 0)), totals=totals)
    fits = row(f"lexicon_{k}_fits", np.float64, found.num_fits * num_classes).reshape(-1, num_classes)
    if not (fits >= LEAST_TOTAL).all() or not (np.abs(fits.sum(1) - 1.0) <= 1e-6).all():
        raise ValueError("the classes of the spelling lexicon's suffixes do not add up to one")
    return replace(found, fits=fits)


def _checked_probs(probs: np.ndarray) -> np.ndarray:
    if not (probs >= 0.0).all() or abs(probs.sum() - 1.0) > 1e-6:
        raise ValueError("the probabilities of the spelling lexicon do not add up to one")
    return probs
