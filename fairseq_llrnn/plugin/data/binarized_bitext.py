"""Reads the training bitext of a folder that fairseq-preprocess wrote, to align its words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, ParallelText
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import WordList, load_dictionary
from fairseq_llrnn.files.binary_text import read_binary_text

SPLIT = "train"


def read_bitext(folder: str, dictionary: str, words: WordList) -> ParallelText:
    """Read `train.SRC-TGT.SRC` and `.TGT` of `folder`; the target side is the one whose dictionary is `words`.

    With a joined dictionary it is the one that the file name of `dictionary` says, or else the second of SRC-TGT.

    Raises:
        OptionError: no bitext there, several, or none of this dictionary. DataError: one that is damaged.
    """
    place = Path(folder)
    languages = _languages(folder)
    dictionaries = {language: load_dictionary(place / f"dict.{language}.txt") for language in languages}
    fitting = [language for language in languages if dictionaries[language].symbols == words.symbols]
    if not fitting:
        raise OptionError(
            f"--lexical-translation {folder}: expected its dict.{languages[0]}.txt or dict.{languages[1]}.txt to have "
            f"the words of --dict {dictionary}, found others; give one of the two as --dict"
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
            f"{source} and {len(sides[1]):,} of {target}; run fairseq-preprocess again, on texts with as many lines, "
            "and no carriage returns within them, which end a sentence there"
        )
    files = tuple(prefix.with_name(prefix.name + ".bin") for prefix in prefixes)
    return ParallelText(Bitext(*sides), dictionaries[source].symbols, files)


def _languages(folder: str) -> tuple[str, str]:
    """SRC and TGT, from the names of the files."""
    place = Path(folder)
    names = {path.name for path in place.iterdir()}
    pairs = set()
    for name in names:
        split, _, rest = name.partition(".")
        source, _, target = rest.partition(".")[0].partition("-")
        wanted = {f"{SPLIT}.{source}-{target}.{side}.{end}" for side in (source, target) for end in ("bin", "idx")}
        if split == SPLIT and target and wanted <= names:
            pairs.add((source, target))
    if not pairs:
        raise OptionError(
            f"--lexical-translation {folder}: expected a bitext ({SPLIT}.SRC-TGT.SRC.bin, {SPLIT}.SRC-TGT.TGT.bin and "
            "their .idx), found none; run fairseq-preprocess with --source-lang, --target-lang and --trainpref"
        )
    if len(pairs) > 1:
        listed = ", ".join("-".join(pair) for pair in sorted(pairs))
        raise OptionError(
            f"--lexical-translation {folder}: expected one language pair, found {listed}; give a folder with one of "
            "them"
        )
    return pairs.pop()


def _read(prefix: Path, size: int) -> BitextSide:
    """The sentences of one language, whose dictionary has `size` words."""
    tokens, lengths = read_binary_text(prefix, size)
    return BitextSide(np.array(tokens, dtype=np.int64), np.concatenate([[0], np.cumsum(lengths)]))
