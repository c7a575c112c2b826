"""The links that eflomal draws (Östling & Tiedemann 2016), if it is installed.

Who aligns the words of a bitext, and the table t(target word | source word) that follows.

Sizes: I sentence pairs, U source words, V target words.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, Links, Pairs
from fairseq_llrnn.alignment.ibm1 import ibm1
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.errors import DataError, OptionError, from_checkout


def eflomal_counts(bitext: Bitext, num_sources: int, num_targets: int) -> Pairs:
    """How often eflomal linked a target token to a source token. It draws random numbers: two runs differ a little.

    Raises:
        DataError: it failed.
    """
    (links,) = eflomal_links(bitext, ("fwd",))
    source, target = bitext.source.tokens[links.source], bitext.target.tokens[links.target]
    keys, counts = np.unique(source * num_targets + target, return_counts=True)
    return keys // num_targets, keys % num_targets, counts.astype(np.float64)


def eflomal_links(bitext: Bitext, directions: Sequence[str]) -> list[Links]:
    """The links that eflomal draws, in each direction.

    Args:
        directions: "fwd": at most one source token for a target token; "rev": at most one target token for a source
            token.

    Raises:
        DataError: it failed.
    """
    logging.getLogger("eflomal").setLevel(logging.WARNING)  # it has a bar of ours
    try:
        eflomal = importlib.import_module("eflomal")
        with tempfile.TemporaryDirectory() as place, tqdm(desc="aligning by eflomal", leave=False, disable=None):
            files = {f"links_filename_{direction}": str(Path(place) / direction) for direction in directions}
            eflomal.Aligner().align(_lines(bitext.source), _lines(bitext.target), **files)
            texts = [Path(file).read_text(encoding="ascii").splitlines() for file in files.values()]
    except (ImportError, OSError, ValueError, subprocess.SubprocessError) as error:
        raise DataError(f"eflomal could not align the bitext ({error}); choose the aligner ibm1") from None
    return [_read_links(lines, bitext) for lines in texts]


def _read_links(lines: Sequence[str], bitext: Bitext) -> Links:
    """Links from lines such as `0-0 1-2`, source place and target place, one line a sentence pair."""
    try:
        if len(lines) != len(bitext.source):
            raise ValueError(f"{len(lines):,} lines for {len(bitext.source):,} pairs")
        ends = np.array(" ".join(lines).replace("-", " ").split(), dtype=np.int64).reshape(-1, 2)
        pair = np.repeat(np.arange(len(bitext.source)), [line.count("-") for line in lines])
        inside = (ends[:, 0] < bitext.source.lengths[pair]) & (ends[:, 1] < bitext.target.lengths[pair])
        if not inside.all():
            raise ValueError("a link to no word")
    except ValueError as error:
        raise DataError(
            f"eflomal: expected links for every sentence pair, found {error}; choose the aligner ibm1"
        ) from None
    return Links(bitext.source.offsets[pair] + ends[:, 0], bitext.target.offsets[pair] + ends[:, 1])


def _lines(sentences: BitextSide) -> list[str]:
    """Sentences as text whose words are ids."""
    words = list(map(str, sentences.tokens.tolist()))
    ends = sentences.offsets.tolist()
    return [" ".join(words[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]


ALIGNERS = ("auto", "eflomal", "ibm1")
LONGEST = 1023  # words of a sentence; eflomal reads no longer ones


def choose_aligner(asked_for: str) -> str:
    """"eflomal" or "ibm1": what `asked_for` is, and for "auto" eflomal where it is installed.

    Raises:
        OptionError: eflomal was asked for and is not there.
    """
    installed = importlib.util.find_spec("eflomal") is not None
    if asked_for == "auto":
        return "eflomal" if installed else "ibm1"
    if asked_for == "eflomal" and not installed:
        raise OptionError(
            f"aligner eflomal: the Python module eflomal is not installed; {from_checkout('align')} (which needs a C "
            "compiler), or choose the aligner ibm1"
        )
    return asked_for


def is_alignable(bitext: Bitext) -> np.ndarray:
    """(I,) bool: the sentence pairs with words on both sides, and not too many of them."""
    usable = np.ones(len(bitext.source), dtype=bool)
    for side in (bitext.source, bitext.target):
        usable &= (side.lengths > 0) & (side.lengths <= LONGEST)
    return usable


def translation_table(
    bitext: Bitext, source_words: np.ndarray, target_words: np.ndarray, top: int, aligner: str,
    workers: int | None = None,
) -> tuple[LexicalTable, Counter[str]]:  # fmt: skip
    """Estimate t(target | source), and count what a user should know about it.

    Args:
        source_words: (U,) bool, who may have translations; target_words: (V,) bool, who may be one. All others are
            left out of the bitext before it is aligned.
        top: how many translations a source word keeps. aligner: "eflomal" or "ibm1". workers: threads of ibm1 (None:
            one for each core); eflomal has its own.

    Raises:
        DataError: no pair of sentences with words on both sides; or eflomal failed.
    """
    source, target = bitext.source.with_words(source_words), bitext.target.with_words(target_words)
    usable = is_alignable(Bitext(source, target))
    notes: Counter[str] = Counter()
    if not usable.all():
        notes[f"sentence pairs not aligned: a side without words, or of more than {LONGEST:,}"] += int((~usable).sum())
    if not usable.any():
        raise DataError(
            "the bitext: expected sentence pairs with words of the dictionaries on both sides, found none among "
            f"{len(usable):,}; give the folder that fairseq-preprocess made from this language pair"
        )
    chosen = Bitext(source.with_sentences(usable), target.with_sentences(usable))
    sizes = len(source_words), len(target_words)
    pairs = eflomal_counts(chosen, *sizes) if aligner == "eflomal" else ibm1(chosen, *sizes, workers=workers)
    return LexicalTable.from_pairs(*pairs, len(source_words), top), notes
