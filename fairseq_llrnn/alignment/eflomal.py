"""The links that eflomal draws (Östling & Tiedemann 2016), if it is installed."""

from __future__ import annotations

import importlib
import logging
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, Links, Pairs
from fairseq_llrnn.errors import DataError


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
            found = [Path(file).read_text(encoding="ascii").splitlines() for file in files.values()]
    except (ImportError, OSError, ValueError, subprocess.SubprocessError) as error:
        raise DataError(f"eflomal could not align the bitext ({error}); say --aligner ibm1") from None
    return [_read_links(lines, bitext) for lines in found]


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
        raise DataError(f"eflomal: expected links for every sentence pair, found {error}; say --aligner ibm1") from None
    return Links(bitext.source.offsets[pair] + ends[:, 0], bitext.target.offsets[pair] + ends[:, 1])


def _lines(sentences: BitextSide) -> list[str]:
    """Sentences as text whose words are ids."""
    words = list(map(str, sentences.tokens.tolist()))
    ends = sentences.offsets.tolist()
    return [" ".join(words[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]
