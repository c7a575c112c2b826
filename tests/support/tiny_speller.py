"""A tiny open vocabulary that a network spells: three classes over all strings of a, b and other characters."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch

from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.open_vocabulary.alphabet import Alphabet
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.classes import ClassWords
from fairseq_llrnn.open_vocabulary.number_strings import GeometricNumbers, StringDistributions
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.open_vocabulary.spelled import SpelledStrings
from fairseq_llrnn.open_vocabulary.speller import Speller
from fairseq_llrnn.open_vocabulary.speller_sizes import SpellerSizes
from fairseq_llrnn.open_vocabulary.spelling_lexicon import SpellingLexicon
from fairseq_llrnn.open_vocabulary.vocabulary import NEURAL, OpenVocabulary

RARE = "aab ab abba b ba bbab aa".split()
KNOWN = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "ab", "ba", "abba"]
WORDS = set(KNOWN[4:])
CLASSES, H = 3, 4
ALPHABET = Alphabet(np.array([ord("a"), ord("b")]), num_characters=3)


def tiny(num_characters: int = 3, lexicon: SpellingLexicon | None = None) -> OpenTable:
    """Three open classes over all strings of a, b and one other character."""
    alphabet = replace(ALPHABET, num_characters=num_characters)
    classes = np.array([0, 1, 0, 1, 2, 0, 2])
    characters = CharacterNGrams.train(RARE, classes, CLASSES, 3, alphabet)
    strings = StringDistributions(characters, GeometricNumbers.train([]), np.zeros(CLASSES), lexicon)
    known = KNOWN[4:]
    rare = ClassWords.of(RARE, classes, strings, known)
    features = FeatureTable.from_rows([{"f": 1.0}] * CLASSES)
    outside = strings.log_outside(known)
    vocabulary = OpenVocabulary(
        ("x", "y", "z"), features, np.log(np.full(CLASSES, 1 / 3)), strings, outside, np.zeros(9), NEURAL, rare
    )
    return OpenTable(vocabulary, OpenWords(KNOWN))


@cache
def spelled_of(table: OpenTable) -> SpelledStrings:
    """Its strings, as the network reads and writes them."""
    return SpelledStrings(table.vocabulary, table.words)


def speller(random: bool = True, seed: int = 3) -> Speller:
    """In float64; with `random`, every parameter has its own value."""
    torch.manual_seed(seed)
    made = Speller(spelled_of(tiny()), H, SpellerSizes(3, 5, 0.3)).double().eval()
    if random:
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter)
    return made
