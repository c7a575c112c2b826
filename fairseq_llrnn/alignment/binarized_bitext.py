"""Read the training bitext of a folder of fairseq-preprocess, to align its words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, ParallelText
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import WordList, load_dictionary
from fairseq_llrnn.files.binary_text import read_binary_text

SPLIT = "train"


def read_bitext(folder: str, dictionary: str, words: WordList) -> ParallelText:
    """Read `train.SRC-TGT.SRC` and `.TGT` of `folder`. The target is the side whose dictionary is `words`.

    With a joined dictionary, the file name of `dictionary` chooses the side, or else it is the second of SRC-TGT.

    Raises:
        OptionError: no bitext, several, or none with this dictionary. DataError: a damaged one.
    """
    place = Path(folder)
    languages = _languages(folder)
    dictionaries = {language: load_dictionary(place / f"dict.{language}.txt") for language in languages}
    fitting = [language for language in languages if dictionaries[language].symbols == words.symbols]
    if not fitting:
        raise OptionError(
            f"--lexical-translation {folder}: expected its dict.{languages[0]}.txt or dict.{languages[1]}.txt to have "
            f"the words of --dict {dictionary}, found others; pass one of the two as --dict"
        )
    named = [language for language in fitting if Path(dictionary).name == f"dict.{language}.txt"]
    target = (named or fitting)[-1]
    source = languages[1] if target == languages[0] else languages[0]
    pair = "-".join(languages)
    prefixes = [place / f"{SPLIT}.{pair}.{language}" for language in (source, target)]
    sides = [_read(p, len(dictionaries[language])) for p, language in zip(prefixes, (source, target), strict=True)]
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{place / SPLIT}.{pair}: expected as many sentences in both languages, found {len(sides[0]):,} of "
            f"{source} and {len(sides[1]):,} of {target}; run fairseq-preprocess again, on texts with equal numbers of "
            "lines and without carriage returns, which would end a sentence"
        )
    files = tuple(prefix.with_name(prefix.name + ".bin") for prefix in prefixes)
    return ParallelText(Bitext(*sides), dictionaries[source].symbols, files)


def _languages(folder: str) -> tuple[str, str]:
    """Return SRC and TGT, from the names of the files."""
    place = Path(folder)
    names = {path.name for path in place.iterdir()}
    pairs = set()
    for name in names:
        split, _, suffix = name.partition(".")
        source, _, target = suffix.partition(".")[0].partition("-")
        needed = {f"{SPLIT}.{source}-{target}.{side}.{end}" for side in (source, target) for end in ("bin", "idx")}
        if split == SPLIT and target and needed <= names:
            pairs.add((source, target))
    if not pairs:
        raise OptionError(
            f"--lexical-translation {folder}: expected a bitext ({SPLIT}.SRC-TGT.SRC.bin, {SPLIT}.SRC-TGT.TGT.bin and "
            "their .idx), found none; run fairseq-preprocess with --source-lang, --target-lang and --trainpref"
        )
    if len(pairs) > 1:
        listed = ", ".join("-".join(pair) for pair in sorted(pairs))
        raise OptionError(
            f"--lexical-translation {folder}: expected one language pair, found {listed}; use a folder with one of them"
        )
    return pairs.pop()


def _read(prefix: Path, size: int) -> BitextSide:
    """Read the sentences of one language, whose dictionary has `size` words."""
    tokens, lengths = read_binary_text(prefix, size)
    return BitextSide(np.array(tokens, dtype=np.int64), np.concatenate([[0], np.cumsum(lengths)]))
