"""Compute the bits of a whole text under a model of words, pieces or characters, including those that `llrnn score`
omits.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_llrnn.alignment.translation_table import is_word
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import characters_of
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart
from fairseq_llrnn.prior.prior import Prior

PARTS = ("known_bits", "unknown_bits", "spelling_bits", "end_bits", "unknown_words")


def whole_bits(
    units: str, facts: Mapping[str, float], plain: Sequence[str], place: Path, prior: Path
) -> dict[str, float]:
    """Return bits and characters of a text, and the parts of the bits if units are words.

    Args:
        units: `open` and `unk`, words with open classes and with <unk>; `pieces`; `characters`.
        facts: output of `llrnn score --json` for the text in these units.
        plain: the lines of the text itself.
        place: the folder of the system's dict.txt.
        prior: a prior with an open vocabulary, whose character model spells the <unk> of `unk`.
    """
    kept, bits = dict(facts), facts["bits"]
    if units == "characters":
        bits += facts["unknown_words"] * bits_of_unknown_character()
    if units == "unk":
        kept["spelling_bits"] = spelling_bits(" ".join(plain).split(), place, prior)
        bits += kept["spelling_bits"]
    if units == "pieces" and facts["unknown_words"]:
        raise DataError(f"{place}: expected pieces for every character, found {facts['unknown_words']} <unk>")
    characters = sum(characters_of(line.split()) for line in plain)
    parts = {part: kept[part] for part in PARTS} if units in ("open", "unk") else {}
    return {"bits": bits, "characters": characters, "bits_per_character": bits / characters, **parts}


def bits_of_unknown_character() -> float:
    """Return the bits of a character of Unicode, given that it is <unk>."""
    from fairseq_llrnn.open_vocabulary.alphabet import NUM_CHARACTERS

    return math.log2(NUM_CHARACTERS)


def spelling_bits(words: Sequence[str], place: Path, prior: Path) -> float:
    """Return −log₂ Σ_o π_o P_o(w) of the words outside a system's dictionary: the character model without a network.

    Its part inside that dictionary is excluded and the remainder normalised, like for the open classes.
    """
    import numpy as np

    part = Prior.load(prior).find(OpenVocabularyPart)
    if part is None:
        raise DataError(f"{prior}: expected a prior with an open vocabulary, found none; make the system `open` first")
    vocabulary = part.vocabulary
    symbols = load_dictionary(place / "dict.txt").symbols
    known = [symbol for symbol, word in zip(symbols, is_word(symbols), strict=True) if word]
    inside = set(known)
    unknown = [word for word in words if word not in inside]
    shares = np.exp(vocabulary.log_shares)
    outside = float((np.exp(vocabulary.strings.log_outside(known)) * shares).sum())
    if not unknown:
        return 0.0
    spelt = np.logaddexp.reduce(vocabulary.strings.log_probs(unknown) + vocabulary.log_shares, axis=1)
    return float(-(spelt - np.log(outside)).sum() / np.log(2))
