"""The aligners of a bitext, and the table t(target word | source word) from their links.

Sizes: I sentence pairs, U source words, V target words, P pairs of a source and a target token of one sentence pair.

IBM Model 1 with a null word (Brown et al. 1993, §4.1) gives, by EM, expected links of pairs of words, or links of
tokens. Time and memory are linear in P. Threads work on parts of the text (numpy releases Python's lock). Their sums
are added in the order of the text, so that the result does not depend on the number of threads.

If the package eflomal (Östling & Tiedemann 2016) is installed, it may align instead, and its sampled links are read.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, Links, Pairs
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.errors import DataError, OptionError, from_checkout
from fairseq_llrnn.features.feature_table import ranges
from fairseq_llrnn.files.processes import default_workers

ITERATIONS = 5  # of EM; after these, the translations of Model 1 hardly change
PAIRS_AT_ONCE = 4_000_000  # limits the memory of a step


@dataclass(frozen=True)
class _Chunk:
    """The token pairs of some sentences, ordered by target token, with its possible sources next to each other."""

    entries: np.ndarray  # (E',) int32, the entries of the table for its pairs
    entry: np.ndarray  # (P',) int32, the index among these for each pair
    sources: np.ndarray  # (target tokens,) number of pairs of each


def ibm1(
    bitext: Bitext, num_sources: int, num_targets: int, iterations: int = ITERATIONS, workers: int | None = None
) -> Pairs:
    """Return expected links of pairs of words, by EM from equal probabilities. The null word of every sentence is left
    out.

    With a(i, j) = t(y_j | s_i) / Σ_i' t(y_j | s_i'), t(y | s) ∝ Σ a(i, j) over all pairs of tokens s_i = s, y_j = y.
    These sums are returned.

    Args:
        workers: threads (None: one for each core).
    """
    keys, _, counts = _estimate(bitext, num_sources, num_targets, iterations, workers)
    sources = keys // num_targets
    is_word = sources < num_sources
    return sources[is_word], (keys % num_targets)[is_word], counts[is_word]


def ibm1_links(bitext: Bitext, num_sources: int, num_targets: int) -> Links:
    """Return the most probable source of each target token, unless that is the null word.

    Of several tokens of the most probable word, the one nearest to the diagonal is chosen, or the first of equals.
    """
    keys, chunks, counts = _estimate(bitext, num_sources, num_targets, ITERATIONS, workers=None)
    sources = keys // num_targets
    probability = counts / np.bincount(sources, counts)[sources]
    source, target = bitext.source, bitext.target
    begins, ends = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    portions = _portions((source.lengths + 1) * target.lengths)
    for (first, last), chunk in zip(portions, chunks, strict=True):
        share = probability[chunk.entries][chunk.entry]  # shape: (P',)
        starts = chunk.sources.cumsum() - chunk.sources
        tokens = np.arange(target.offsets[first], target.offsets[last])
        sentence = np.repeat(np.arange(first, last), target.lengths[first:last])  # for each target token
        place = np.arange(len(share)) - np.repeat(starts, chunk.sources) - 1  # for each source; −1 is the null word
        diagonal = (tokens - target.offsets[sentence] + 0.5) / target.lengths[sentence]
        words = np.repeat(source.lengths[sentence], chunk.sources)
        distance = np.abs((place + 0.5) / words - np.repeat(diagonal, chunk.sources))
        distance[place < 0] = 2.0  # farther than all others
        distance[share < np.repeat(np.maximum.reduceat(share, starts), chunk.sources)] = 3.0
        token = np.repeat(np.arange(len(tokens)), chunk.sources)
        nearest = np.flatnonzero(distance == np.minimum.reduceat(distance, starts)[token])
        _, first_places = np.unique(token[nearest], return_index=True)
        chosen = place[nearest[first_places]]  # shape: (target tokens,)
        linked = chosen >= 0
        begins.append((source.offsets[sentence] + chosen)[linked])
        ends.append(tokens[linked])
    return Links(np.concatenate(begins), np.concatenate(ends))


def _estimate(
    bitext: Bitext, num_sources: int, num_targets: int, iterations: int, workers: int | None
) -> tuple[np.ndarray, list[_Chunk], np.ndarray]:
    """Return keys of all pairs of words, source·V + target (null: num_sources), the chunks, and expected links of each
    pair.
    """
    workers = default_workers() if workers is None else workers
    keys, chunks = _tabulate(bitext, num_sources, num_targets)
    sources = keys // num_targets
    probability = np.ones(len(keys))
    with (
        tqdm(total=iterations * len(chunks), desc="aligning", unit=" parts", leave=False, disable=None) as bar,
        ThreadPoolExecutor(workers) as threads,
    ):
        for _ in range(iterations):
            counts = np.zeros(len(keys))
            for begin in range(0, len(chunks), workers):
                batch = chunks[begin : begin + workers]
                results = threads.map(partial(_expected_links, probability), batch)
                for chunk, expected in zip(batch, results, strict=True):
                    counts[chunk.entries] += expected
                    bar.update()
            probability = counts / np.bincount(sources, counts)[sources]
    return keys, chunks, counts


def _expected_links(probability: np.ndarray, chunk: _Chunk) -> np.ndarray:
    """Return Σ a(i, j) over a part of the text, for its entries: (E',)."""
    share = probability[chunk.entries][chunk.entry]  # shape: (P',)
    starts = chunk.sources.cumsum() - chunk.sources
    share /= np.repeat(np.add.reduceat(share, starts), chunk.sources)
    return np.bincount(chunk.entry, share, len(chunk.entries))


def _tabulate(bitext: Bitext, null: int, num_targets: int) -> tuple[np.ndarray, list[_Chunk]]:
    """Return all pairs of words in some sentence pair, as rising source·V + target, and the chunks."""
    source, target = bitext.source.with_null(null), bitext.target
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for first, last in _portions(source.lengths * target.lengths):
        per_target = np.repeat(source.lengths[first:last], target.lengths[first:last])
        begin = np.repeat(source.offsets[first:last], target.lengths[first:last])
        tokens = target.tokens[target.offsets[first] : target.offsets[last]]
        pairs = source.tokens[ranges(begin, per_target)] * num_targets + np.repeat(tokens, per_target)
        keys, entry = np.unique(pairs, return_inverse=True)
        parts.append((keys, entry.astype(np.int32), per_target))
    keys = np.unique(np.concatenate([part[0] for part in parts]))
    chunks = [_Chunk(np.searchsorted(keys, part[0]).astype(np.int32), *part[1:]) for part in parts]
    return keys, chunks


def _portions(sizes: np.ndarray) -> list[tuple[int, int]]:
    """Return ranges of neighbouring sentence pairs with about PAIRS_AT_ONCE token pairs each, or with one larger
    pair.
    """
    portion = sizes.cumsum() // PAIRS_AT_ONCE
    cuts = [0, *(np.flatnonzero(np.diff(portion)) + 1).tolist(), len(sizes)]
    return list(zip(cuts[:-1], cuts[1:], strict=True))


def eflomal_counts(bitext: Bitext, num_sources: int, num_targets: int) -> Pairs:
    """Return eflomal's numbers of links between words. eflomal is random: two runs differ slightly.

    Raises:
        DataError: eflomal failed.
    """
    (links,) = eflomal_links(bitext, ("fwd",))
    source, target = bitext.source.tokens[links.source], bitext.target.tokens[links.target]
    keys, counts = np.unique(source * num_targets + target, return_counts=True)
    return keys // num_targets, keys % num_targets, counts.astype(np.float64)


def eflomal_links(bitext: Bitext, directions: Sequence[str]) -> list[Links]:
    """Return eflomal's links in each direction.

    Args:
        directions: "fwd": at most one source token for a target token; "rev": at most one target token for a source
            token.

    Raises:
        DataError: eflomal failed.
    """
    logging.getLogger("eflomal").setLevel(logging.WARNING)  # our progress bar replaces its log
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
    """Parse lines such as `0-0 1-2`, source place and target place, one line per sentence pair."""
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
    """Return sentences as text whose words are ids."""
    words = list(map(str, sentences.tokens.tolist()))
    ends = sentences.offsets.tolist()
    return [" ".join(words[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]


ALIGNERS = ("auto", "eflomal", "ibm1")
LONGEST = 1023  # most words of a sentence for eflomal


def choose_aligner(name: str) -> str:
    """Return "eflomal" or "ibm1". "auto" is eflomal if it is installed.

    Raises:
        OptionError: eflomal is requested but not installed.
    """
    installed = importlib.util.find_spec("eflomal") is not None
    if name == "auto":
        return "eflomal" if installed else "ibm1"
    if name == "eflomal" and not installed:
        raise OptionError(
            f"aligner eflomal: the Python module eflomal is not installed; {from_checkout('align')} (it needs a C "
            "compiler), or choose the aligner ibm1"
        )
    return name


def is_alignable(bitext: Bitext) -> np.ndarray:
    """Return the sentence pairs with words on both sides and at most LONGEST words: (I,) bool."""
    usable = np.ones(len(bitext.source), dtype=bool)
    for side in (bitext.source, bitext.target):
        usable &= (side.lengths > 0) & (side.lengths <= LONGEST)
    return usable


def translation_table(
    bitext: Bitext, source_words: np.ndarray, target_words: np.ndarray, top: int, aligner: str,
    workers: int | None = None,
) -> tuple[LexicalTable, Counter[str]]:  # fmt: skip
    """Estimate t(target | source), and return notes for the user with counts.

    Args:
        source_words: (U,) bool, the source words that may have translations.
        target_words: (V,) bool, the possible translations. All other words are left out before the alignment.
        top: most translations of a source word.
        aligner: "eflomal" or "ibm1".
        workers: threads of ibm1 (None: one for each core); eflomal has its own.

    Raises:
        DataError: no pair of sentences has words on both sides, or eflomal failed.
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
