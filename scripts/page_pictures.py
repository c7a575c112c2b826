#!/usr/bin/env python3
"""Draw the pictures of docs/concepts.md and docs/guides/grammars.md, with the probabilities of small models.

python scripts/page_pictures.py
"""

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from svg import OTHER, OURS, picture, text

from fairseq_llrnn import LogLinearHead
from fairseq_llrnn.prior import Recipe, build_prior

DOCS = Path(__file__).resolve().parents[1] / "docs"
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]

# ---- docs/la-table.svg -----------------------------------------------------------------------------------------------

WORDS = {  # features, count
    "le": (["DET", "Masc"], 50), "la": (["DET", "Fem"], 40), "chat": (["NOUN", "Masc"], 12),
    "rue": (["NOUN", "Fem"], 9), "table": (["NOUN", "Fem"], 2), "mange": (["VERB"], 6),
}  # fmt: skip
ADAPTOR = {"DET": -3.0, "NOUN": 1.5, "VERB": -2.0, "Fem": 1.0, "Masc": -1.5}  # after la
BAR, ROW, TOP = 110, 26, 72


def after_la() -> str:
    """Return the picture of b(x) · exp(aᵀφ(x)) → p(x) after *la*."""
    masses = {word: count * math.exp(_score(word)) for word, (_, count) in WORDS.items()}
    counts, total = sum(count for _, count in WORDS.values()), sum(masses.values())
    rows = [(word, WORDS[word][1] / counts, _score(word), masses[word] / total) for word in WORDS]
    return picture(740, TOP + ROW * len(rows) + 10, _drawn_scores(rows))


def _score(word: str) -> float:
    return sum(ADAPTOR[feature] for feature in WORDS[word][0])


def _drawn_scores(rows: list[tuple[str, float, float, float]]) -> Iterator[str]:
    scores = ", ".join(f"{feature} {score:+}" for feature, score in ADAPTOR.items())
    yield text(20, 20, f"after la, the network gives each feature a score a(K):  {scores}")
    columns = (180, "background b(x)"), (350, "score a(K)ᵀφ(x)"), (540, "probability p(x given K)")
    yield text(20, 52, "x, features φ(x)", colour=OTHER)
    for x, title in columns:
        yield text(x, 52, title, colour=OTHER)
    most = max(max(background, prob) for _, background, _, prob in rows)
    largest = max(abs(score) for _, _, score, _ in rows)
    for i, (word, background, score, prob) in enumerate(rows):
        y = TOP + ROW * i
        yield text(20, y + 12, word)
        yield text(74, y + 12, " ".join(WORDS[word][0]), colour=OTHER)
        yield _bar(columns[0][0], y, BAR * background / most, OTHER)
        yield text(columns[0][0] + BAR * background / most + 5, y + 12, f"{background:.2f}")
        zero = columns[1][0] + BAR / 2
        end = zero + BAR / 2 * score / largest
        yield _bar(min(zero, end), y, abs(end - zero), OURS)
        yield text(columns[1][0] + BAR + 8, y + 12, f"{score:+}")
        yield _bar(columns[2][0], y, BAR * prob / most, OURS)
        yield text(columns[2][0] + BAR * prob / most + 5, y + 12, f"{prob:.2f}")


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="16" fill="{colour}"/>'


# ---- docs/guides/beam.svg --------------------------------------------------------------------------------------------

GRAMMAR = "(le [chat roi] | la mer) (dort | voit le chat)"
COUNTS = {"le": 60, "la": 40, "chat": 30, "roi": 12, "mer": 15, "dort": 10, "voit": 6}
BEAM, STEPS, STEP, LINE_HEIGHT = 2, 3, 170, 30


class Hypothesis(NamedTuple):
    """A beginning of a string."""

    words: tuple[str, ...]
    prob: float  # of its last word
    log_prob: float
    is_kept: bool


def beam_of_a_grammar() -> str:
    """Return the picture of a beam search inside a grammar."""
    steps = list(searched())
    height = 60 + LINE_HEIGHT * max(map(len, steps))
    return picture(60 + STEP * STEPS, height + 50, _drawn_beam(steps, height))


@torch.no_grad()
def searched() -> Iterator[list[Hypothesis]]:
    """Yield the possible hypotheses of each step, the best first."""
    words, counts = [*SPECIALS, *COUNTS], [0, 0, 10, 0, *COUNTS.values()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "some.regex")
        path.write_text(GRAMMAR, encoding="utf-8")
        recipe = Recipe(counts=np.array(counts), background=f"unigram times automaton({path})", top_words="all")
        head = LogLinearHead(build_prior(words, recipe), hidden_size=1)
    kept: list[tuple[tuple[str, ...], float]] = [((), 0.0)]
    state = head.start(1)
    for _ in range(STEPS):
        log_probs = head.step(torch.zeros(len(kept), 1), state).word_log_probs()
        found = sorted(
            ((log_prob + before[1], parent, token) for parent, before in enumerate(kept)
             for token, log_prob in enumerate(log_probs[parent].tolist()) if log_prob > -math.inf),
            reverse=True,
        )  # fmt: skip
        yield [
            Hypothesis((*kept[parent][0], words[token]), log_probs[parent, token].exp().item(), log_prob, i < BEAM)
            for i, (log_prob, parent, token) in enumerate(found)
        ]
        parents, tokens = (torch.tensor([entry[place] for entry in found[:BEAM]]) for place in (1, 2))
        kept = [((*kept[parent][0], words[token]), log_prob) for log_prob, parent, token in found[:BEAM]]
        state = head.advance(state.select(parents), tokens)


def _drawn_beam(steps: list[list[Hypothesis]], height: float) -> Iterator[str]:
    places: dict[tuple[str, ...], tuple[float, float]] = {(): (40.0, 50.0)}
    yield text(10, 54, "<s>")
    for number, hypotheses in enumerate(steps):
        x = 60 + STEP * number
        yield text(x, 20, f"word {number + 1}", colour=OTHER)
        for i, hypothesis in enumerate(sorted(hypotheses, key=lambda each: places[each.words[:-1]][1])):
            y, colour = 50 + LINE_HEIGHT * i, OURS if hypothesis.is_kept else OTHER
            (from_x, from_y), width = places[hypothesis.words[:-1]], 2 if hypothesis.is_kept else 1
            yield f'<path d="M{from_x} {from_y}L{x - 6} {y}" stroke="{colour}" stroke-width="{width}"/>'
            places[hypothesis.words] = (x + 118, y)
            yield text(x, y + 4, f"{hypothesis.words[-1]}  {hypothesis.prob:.2f}", colour=colour)
            if hypothesis.is_kept:
                yield text(x + 65, y + 4, f"({math.exp(hypothesis.log_prob):.2f})", colour=OURS)
        possible = {hypothesis.words[-1] for hypothesis in hypotheses}
        forbidden = [word for word in (*COUNTS, "</s>") if word not in possible]
        yield text(x, height, "p = 0:", colour=OTHER)
        for line in range(0, len(forbidden), 4):
            yield text(x, height + 18 + 4 * line, " ".join(forbidden[line : line + 4]), colour=OTHER)


PICTURES = {"la-table.svg": after_la, "guides/beam.svg": beam_of_a_grammar}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (DOCS / name).write_text(draw(), encoding="utf-8")
