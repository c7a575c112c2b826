"""Links between the words of a bitext in both directions, combined into one alignment.

A direction links every target token to at most one source token (forward), or every source token to at most one target
token (backward). `symmetrised` combines both, as a set between their intersection and their union
(grow-diag-final-and: Koehn, Och & Marcu 2003; Och & Ney 2003, §5).
Sizes: L links. A link of one sentence pair is (i, j), source place and target place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairseq_llrnn.alignment.aligners import eflomal_links, ibm1_links, is_alignable
from fairseq_llrnn.alignment.bitext import Bitext, Links

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
Grid = set[tuple[int, int]]  # links of a sentence pair


def directed_links(
    bitext: Bitext, num_sources: int, num_targets: int, aligner: str, directions: Sequence[str] = ("fwd", "rev")
) -> list[Links]:
    """Return links in each direction; none in sentence pairs that cannot be aligned.

    Args:
        directions: forward, "fwd": at most one source token for each target token; backward, "rev".
    """
    usable = is_alignable(bitext)
    if not usable.any():
        return [Links(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)) for _ in directions]
    chosen = Bitext(bitext.source.with_sentences(usable), bitext.target.with_sentences(usable))
    if aligner == "eflomal":
        found = eflomal_links(chosen, directions)
    else:
        found = [ibm1_links(chosen, num_sources, num_targets)]
        if "rev" in directions:
            swapped = ibm1_links(Bitext(chosen.target, chosen.source), num_targets, num_sources)
            found.append(Links(swapped.target, swapped.source))
    # places among all tokens, also of sentences that were left out
    sources, targets = (np.flatnonzero(np.repeat(usable, side.lengths)) for side in (bitext.source, bitext.target))
    return [Links(sources[links.source], targets[links.target]) for links in found]


def symmetrised(forward: Links, backward: Links, bitext: Bitext) -> Links:
    """Return one alignment of both directions, ordered by source token, then by target token."""
    width = max(1, len(bitext.target.tokens))
    keys = [np.unique(links.source * width + links.target) for links in (forward, backward)]
    grown = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *_grow_links(keys[0], keys[1], bitext, width)]))
    return Links(grown // width, grown % width)


def _grow_links(forward: np.ndarray, backward: np.ndarray, bitext: Bitext, width: int) -> Iterator[np.ndarray]:
    """Yield keys of the links of every sentence pair."""
    union = np.union1d(forward, backward)
    offsets, targets = bitext.source.offsets, bitext.target.offsets
    # a link's sentence pair follows from its source token, and keys are ordered by it
    cuts = [np.searchsorted(keys, offsets * width) for keys in (forward, backward)]
    for sentence in np.unique(np.searchsorted(offsets, union // width, side="right") - 1).tolist():
        i0, j0 = int(offsets[sentence]), int(targets[sentence])
        forward_grid, backward_grid = (
            {(key // width - i0, key % width - j0) for key in keys[cut[sentence] : cut[sentence + 1]].tolist()}
            for keys, cut in zip((forward, backward), cuts, strict=True)
        )
        links = grow_diag_final_and(forward_grid, backward_grid)
        yield np.array([(i + i0) * width + j + j0 for i, j in links], dtype=np.int64)


def grow_diag_final_and(forward: Grid, backward: Grid) -> Grid:
    """Return the links of a sentence pair: the intersection, grown by neighbours, then by links between unlinked words.

    Neighbours, also diagonal ones, are links of the union that give a word its first link. They are added until none is
    left, in the order of target and source places. Then links of `forward` and of `backward` between two unlinked words
    are added.
    """
    links = forward & backward
    free = (forward | backward) - links
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(link: tuple[int, int]) -> None:
        links.add(link)
        free.discard(link)
        sources.add(link[0])
        targets.add(link[1])

    grows = bool(free)
    while grows:
        grows = False
        for j, i in sorted((j, i) for i, j in forward | backward):
            if (i, j) not in links:
                continue
            for di, dj in NEIGHBOURS:
                link = (i + di, j + dj)
                if link in free and (link[0] not in sources or link[1] not in targets):
                    add(link)
                    grows = True
    for direction in (forward, backward):
        for j, i in sorted((j, i) for i, j in direction if (i, j) in free):
            if i not in sources and j not in targets:
                add((i, j))
    return links
