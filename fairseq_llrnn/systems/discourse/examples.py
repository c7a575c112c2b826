"""Examples of the three objectives from paragraphs (Jernite 2018, section 5.3).

ORDER         two adjacent sentences, in half of the examples with their places changed
NEXT          three sentences, and five candidates for the fourth: itself and four that come later in the paragraph
CONJUNCTION   two adjacent sentences of which the second began with a conjunction, and the relation that it tells

A paragraph of 8 sentences or more gives a NEXT example from its beginning, and others from each N-th sentence on, as
long as 8 are left: with N = 8 none share a sentence, N = 1 gives the most (the thesis takes the beginning alone, of a
thousand times as many paragraphs). All paragraphs give pairs; the thesis takes those of the long ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairseq_llrnn.systems.discourse.conjunctions import Conjunctions

CONTEXT, CANDIDATES = 3, 5
LENGTH = CONTEXT + CANDIDATES
FLIPPED = 1  # the label of ORDER; 0: as in the text


@dataclass(frozen=True)
class Example:
    """Sentences and the answer: FLIPPED or 0; the place of the true candidate, from 0; the number of the relation."""

    objective: str
    sentences: tuple[Sequence[str], ...]
    answer: int


def order_examples(paragraph: Sequence[Sequence[str]], rng: random.Random) -> Iterator[Example]:
    """A sentence that is said twice has no order."""
    for first, second in zip(paragraph, paragraph[1:], strict=False):
        if first == second:
            continue
        flipped = rng.random() < 0.5
        yield Example("order", (second, first) if flipped else (first, second), FLIPPED if flipped else 0)


def next_examples(paragraph: Sequence[Sequence[str]], every: int, rng: random.Random) -> Iterator[Example]:
    """every: sentences from the beginning of an example to that of the next one."""
    for begin in range(0, len(paragraph) - LENGTH + 1, every):
        truth = begin + CONTEXT
        candidates = [truth, *rng.sample(range(truth + 1, len(paragraph)), CANDIDATES - 1)]
        rng.shuffle(candidates)
        sentences = tuple(paragraph[i] for i in [*range(begin, truth), *candidates])
        yield Example("next", sentences, candidates.index(truth))


def conjunction_examples(paragraph: Sequence[Sequence[str]], conjunctions: Conjunctions) -> Iterator[Example]:
    """A conjunction before the first sentence is left out as well; pairs of which nothing is left give none."""
    parted = [conjunctions.split(sentence) for sentence in paragraph]
    for (_, first), (relation, second) in zip(parted, parted[1:], strict=False):
        if relation is not None and first and second:
            yield Example("conjunction", (first, second), relation)


def all_examples(
    paragraph: Sequence[Sequence[str]], conjunctions: Conjunctions, next_every: int, rng: random.Random
) -> Iterator[Example]:
    """Those of the three objectives in turn; the same paragraphs and the same random numbers give the same examples."""
    yield from order_examples(paragraph, rng)
    yield from next_examples(paragraph, next_every, rng)
    yield from conjunction_examples(paragraph, conjunctions)
