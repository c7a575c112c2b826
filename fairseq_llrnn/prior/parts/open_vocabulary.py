"""The open vocabulary: classes of words outside the dictionary, each a distribution over strings.

It makes no background: the classes share that of <unk> (open_vocabulary/open_strings.py).

Sizes: V words, O open classes, n rare words, F output features. A rare word with count c is read as unknown in a
share d/c of its tokens. d = n₁ / (n₁ + 2 n₂), from the numbers of words that occur once and twice (absolute
discounting; Ney, Essen & Kneser 1994). So training has as many unknown tokens as a new text, and they belong to
productive classes. The background moves the same share of every word's weight to <unk>. π_o is the part of class o in
these tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn import defaults
from fairseq_llrnn.alignment.translation_table import is_word
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.evidence_table import unknown_word_features
from fairseq_llrnn.features.dictionary import SPECIALS, UNK, WordList
from fairseq_llrnn.features.feature_table import NOT_TOP, SPECIAL, TOP_FORM, FeatureTable
from fairseq_llrnn.lexicon.features import Lexicon, feature_group
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.readers.word_counts import read_word_counts
from fairseq_llrnn.ngrams.kneser_ney import LARGEST_DISCOUNT
from fairseq_llrnn.open_vocabulary.affix_grammar import Grammar, read_grammar
from fairseq_llrnn.open_vocabulary.alphabet import is_text
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.classes import LEAST_TYPES, ClassWords, open_classes
from fairseq_llrnn.open_vocabulary.lexicon_weights import fit_lexicon
from fairseq_llrnn.open_vocabulary.number_strings import GEOMETRIC_SHARE, GeometricNumbers, StringDistributions
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.open_vocabulary.speller_sizes import SpellerSizes
from fairseq_llrnn.open_vocabulary.vocabulary import CHARACTERS, NEURAL, OpenVocabulary, read_open_vocabulary
from fairseq_llrnn.prior.part import Facts, Part, PriorView, SavedPart, register_part
from fairseq_llrnn.prior.prior import Prior

if TYPE_CHECKING:
    from fairseq_llrnn.output.class_source import ClassSource, ClassSourceOf, Head


@register_part("open_vocabulary")
@dataclass(frozen=True)
class OpenVocabularyPart(Part):
    """The open classes. φ contains their features."""

    vocabulary: OpenVocabulary

    class_name = "open_words"

    def arrays(self) -> dict[str, np.ndarray]:
        return self.vocabulary.arrays()

    def description(self) -> dict[str, Any]:
        return self.vocabulary.description()

    @classmethod
    def read(cls, saved: SavedPart) -> OpenVocabularyPart:
        output, names = saved.prior.output, saved.prior.output.features.names
        vocabulary = read_open_vocabulary(saved.arrays, saved.description, names, len(saved.prior.symbols))
        if np.bincount(output.class_of)[output.class_of[saved.prior.index(UNK)]] > 1:
            raise ValueError("the open vocabulary needs <unk> alone in its signature")
        return cls(vocabulary)

    def open_words(self, prior: PriorView) -> OpenTable:
        return prior.session.memoize("open_vocabulary", lambda: OpenTable(self.vocabulary, prior.session.target))

    def class_source(self, head: Head) -> ClassSource:
        return open_words()(head)

    def lines(self, prior: PriorView) -> list[str]:
        lexicon = self.vocabulary.strings.lexicon
        lines = [] if lexicon is None else lexicon.lines(self.vocabulary.log_shares)
        return [f"classes {', '.join(self.vocabulary.names)}", *lines]

    def word(self, prior: PriorView, index: int) -> Facts:
        share = float(self.vocabulary.word_shares[index])
        return {"unknown": [f"read as <unk> in training: {share:.1%}"]} if share else {}

    def counts(self) -> dict[str, int]:
        return {"open classes": len(self.vocabulary.names)}


def open_words(sizes: SpellerSizes | None = None) -> ClassSourceOf:
    """Return a factory of a head's open classes: `LogLinearHead(prior, H, classes=[open_words(SpellerSizes(…))])`.

    Args:
        sizes: of the network that spells, if the prior has one (None: the default ones).

    Raises:
        OptionError: (when the head is made) sizes are given, and the prior has only n-grams.
    """

    def make(head: Head) -> ClassSource:
        from fairseq_llrnn.open_vocabulary.open_strings import OpenWords

        return OpenWords.of(head, head.prior.open_words, sizes)

    return make


# ---- how it is built -----------------------------------------------------------------------------------------------


FLOOR = defaults.OPEN_FLOOR  # largest count of a rare word
OPEN = "Open"  # the feature group with a feature for each class
LEAST_PART = 0.05  # least mean of a feature over a class's words, for the class to have it


def read_lists(places: Sequence[str], spelling: Spelling, option: str) -> list[Mapping[str, float] | Grammar]:
    """Return the words that unknown words often are, from each lexicon. Raises DataError as the readers."""
    return [
        read_grammar(place, spelling) if place.endswith(".dic") else read_word_counts(place, spelling, option)
        for place in places
    ]


def add_open_vocabulary(
    prior: Prior,
    words: WordList,
    counts: Mapping[str, int],
    lexicon: Lexicon,
    floor: int = FLOOR,
    least_types: int = LEAST_TYPES,
    kind: str = CHARACTERS,
    lists: Sequence[Mapping[str, float] | Grammar] = (),
) -> Prior:
    """Return the prior with open classes.

    Args:
        words: its dictionary.
        counts: the count of each word of the text, also of words outside the dictionary. A `<unk>` in the text (Penn
            Treebank, WikiText) is no word.
        lexicon: features of words outside the dictionary.
        floor: the largest count of a rare word.
        least_types: the number of rare words that form a class of their own.
        kind: of open_vocabulary/vocabulary.py.
        lists: word -> count, of words that unknown words often are; or the grammars of hunspell dictionaries.

    Raises:
        DataError: the text has no rare word.
    """
    counts = {word: count for word, count in counts.items() if word not in SPECIALS}
    index = {words.symbols[i]: i for i in np.flatnonzero(is_word(words.symbols)).tolist()}
    rare = sorted(w for w, c in counts.items() if c > 0 and is_text(w) and (c <= floor or w not in index))
    if not rare:
        raise DataError(
            f"--open-vocabulary: expected words that occur at most {floor} times, from which to learn what unknown "
            "words are like, found none; give the training text as --count-text, or raise open_vocabulary.floor"
        )
    shares = _shares(counts, rare, index)
    spelled = [*rare, *sorted(w for w, c in counts.items() if c > floor and is_text(w) and w in index)]
    rows = [_features(word, prior, index.get(word), lexicon) for word in spelled]
    classes = open_classes(spelled, rows, least_types, len(rare))
    num_classes = len(classes.names)
    tokens = np.array([counts[word] for word in rare]) * shares
    rare_class = classes.class_of[: len(rare)]
    class_weights = (
        np.bincount(rare_class, weights=tokens, minlength=num_classes) + 1.0 / num_classes
    )  # a class may have no word yet
    output = prior.output.features.with_names((NOT_TOP, *(f"{OPEN}:{name}" for name in classes.names)))
    features = _class_rows(rows[: len(rare)], rare_class, classes.names, output)
    strings = StringDistributions(
        CharacterNGrams.train(spelled, classes.class_of, num_classes),
        GeometricNumbers.train([word for word, o in zip(rare, rare_class, strict=True) if classes.numbers[o]]),
        np.where(classes.numbers, GEOMETRIC_SHARE, 0.0),
    )
    word_shares = np.zeros(len(words))
    for word, share in zip(rare, shares, strict=True):
        if word in index:
            word_shares[index[word]] = share
    class_words = ClassWords.of(spelled, classes.class_of, strings, list(index)) if lists or kind == NEURAL else None
    if lists and class_words is not None:
        counted = np.array([counts[word] for word in spelled])
        common = frozenset(word for word, place in index.items() if word_shares[place] == 0.0)
        lexicon_of_strings = fit_lexicon(lists, strings, class_words, counted == counted.min(), index.keys(), common)
        strings = replace(strings, lexicon=lexicon_of_strings)
        if kind == NEURAL:
            class_words = ClassWords.of(spelled, classes.class_of, strings, list(index))
    vocabulary = OpenVocabulary(
        classes.names,
        features,
        np.log(class_weights / class_weights.sum()),
        strings,
        strings.log_outside(list(index)),
        word_shares,
        kind,
        class_words if kind == NEURAL else None,
    )
    is_shared = prior.input is prior.output
    signatures = replace(prior.output, features=output)

    def moved(log_weights: np.ndarray) -> np.ndarray:
        return _move_to_unknown(log_weights, word_shares, words.symbols.index(UNK))

    settings = {**prior.settings, "open_floor": floor}
    prior = replace(
        prior,
        output=signatures,
        input=signatures if is_shared else prior.input,
        log_weights=moved(prior.log_weights),
        settings=settings,
        parts=tuple(part.reweighed(moved) for part in prior.parts),
    )
    return prior.with_part(OpenVocabularyPart(vocabulary))


def _shares(counts: Mapping[str, int], rare: list[str], index: Mapping[str, int]) -> np.ndarray:
    """Return the share of each rare word's tokens that is read as unknown: 1 for a word outside the dictionary."""
    types_by_count = Counter(counts.values())
    discount = types_by_count[1] / (types_by_count[1] + 2.0 * types_by_count[2]) if types_by_count[1] else 0.5
    discount = min(discount, LARGEST_DISCOUNT)
    return np.array([discount / counts[word] if word in index else 1.0 for word in rare])


def _features(word: str, prior: PriorView, place: int | None, lexicon: Lexicon) -> dict[str, float]:
    """Return the features of a word in φ, without its indicator."""
    if place is not None:
        row = prior.output.features_of(place)
        return {name: value for name, value in row.items() if feature_group(name) not in (TOP_FORM, NOT_TOP)}
    index = prior.output.features.index
    lexicon_features = {name: value for name, value in lexicon.features(word).items() if name in index and value != 0.0}
    surface_features = unknown_word_features(word, index, bool(prior.settings.get("shapes")))
    return {name: value for name, value in {**surface_features, **lexicon_features}.items() if name != NOT_TOP}


def _class_rows(
    rows: list[dict[str, float]], class_of: np.ndarray, names: tuple[str, ...], output: FeatureTable
) -> FeatureTable:
    """Return the mean features of each class's rare words, and the features of an unknown word."""
    sums: list[Counter[str]] = [Counter() for _ in names]
    for row, o in zip(rows, class_of, strict=True):
        for name, value in row.items():
            sums[o][name] += value
    sizes = np.bincount(class_of, minlength=len(names))
    means = []
    for total, size, class_name in zip(sums, sizes, names, strict=True):
        mean = {name: value / size for name, value in total.items() if abs(value) / size >= LEAST_PART}
        means.append(mean | {NOT_TOP: 1.0, f"{SPECIAL}:{UNK}": 1.0, f"{OPEN}:{class_name}": 1.0})
    return FeatureTable.from_rows(means, output.names)


def _move_to_unknown(log_weights: np.ndarray, word_shares: np.ndarray, unk: int) -> np.ndarray:
    """Return log b(x) after moving the share `word_shares` of each word's weight to <unk>: (V,) -> (V,)."""
    weights = np.exp(log_weights)
    lost = float((weights * word_shares).sum())
    weights = weights * (1.0 - word_shares)
    weights[unk] += lost
    with np.errstate(divide="ignore"):
        return np.log(weights)
