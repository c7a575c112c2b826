"""Phrases at the beginning of a sentence that tell how it goes on from the one before (Jernite 2018, Table 5.4).

A phrase counts where a comma follows it; an opening quotation mark or dash may stand before it. The French list has
phrases of the same relations; words are those of Moses' tokeniser (`d' ailleurs`).

Examples of the three objectives from paragraphs (Jernite 2018, section 5.3).

ORDER         two adjacent sentences, in half of the examples with their places changed
NEXT          three sentences, and five candidates for the fourth: itself and four that come later in the paragraph
CONJUNCTION   two adjacent sentences of which the second began with a conjunction, and the relation that it tells

A paragraph of 8 sentences or more gives a NEXT example from its beginning, and others from each N-th sentence on, as
long as 8 are left: with N = 8 none share a sentence, N = 1 gives the most (the thesis takes the beginning alone, of a
thousand times as many paragraphs). All paragraphs give pairs; the thesis takes those of the long ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

COMMA = ","
OPENING = frozenset(['"', "“", "«", "„", "'", "‘", "—", "–", "-", "--", "``", "''"])

ENGLISH = {
    "addition": "again; also; besides; finally; further; furthermore; moreover; in addition",
    "contrast": "anyway; however; instead; nevertheless; otherwise; contrarily; conversely; nonetheless; in contrast; "
    "rather",
    "time": "meanwhile; next; then; now; thereafter",
    "result": "accordingly; consequently; hence; thus; therefore",
    "specific": "namely; specifically; notably; that is; for example",
    "compare": "likewise; similarly",
    "strengthen": "indeed; in fact",
    "return": "still",
    "recognize": "undoubtedly; certainly",
}
FRENCH = {
    "addition": "de plus; en outre; par ailleurs; d' ailleurs; enfin; également; de surcroît; du reste; au reste; "
    "au surplus; encore",
    "contrast": "cependant; pourtant; toutefois; néanmoins; au contraire; en revanche; par contre; sinon; autrement; "
    "plutôt; inversement; malgré tout",
    "time": "pendant ce temps; en attendant; ensuite; puis; alors; maintenant; désormais; dès lors",
    "result": "ainsi; donc; aussi; par conséquent; en conséquence; c' est pourquoi",
    "specific": "c' est-à-dire; à savoir; notamment; en particulier; par exemple",
    "compare": "de même; pareillement; semblablement",
    "strengthen": "en effet; en fait; de fait; en réalité; à vrai dire; effectivement",
    "return": "tout de même; quand même",
    "recognize": "sans doute; certes; certainement; assurément; évidemment",
}
LANGUAGES = {"en": ENGLISH, "fr": FRENCH}
RELATIONS = tuple(ENGLISH)  # the classes of CONJUNCTION, the same in all languages


class Conjunctions:
    """The phrases of a language."""

    def __init__(self, phrases: Mapping[str, str]) -> None:
        """phrases: of each relation, with semicolons between them."""
        self._relation = {
            tuple(phrase.split()): RELATIONS.index(relation)
            for relation, listed in phrases.items()
            for phrase in listed.split(";")
        }
        self._longest = max(map(len, self._relation))

    def split(self, words: Sequence[str]) -> tuple[int | None, list[str]]:
        """The relation that a sentence's first phrase tells, and the sentence without the phrase and its comma.

        None, and the sentence as it is, where it begins otherwise.
        """
        begin = 1 if words and words[0] in OPENING else 0
        lowered = [word.lower() for word in words[begin : begin + self._longest + 1]]
        for length in range(1, len(lowered)):
            relation = self._relation.get(tuple(lowered[:length]))
            if relation is not None and lowered[length] == COMMA:
                return relation, [*words[:begin], *words[begin + length + 1 :]]
        return None, list(words)


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
