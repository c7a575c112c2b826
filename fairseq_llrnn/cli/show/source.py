"""What `llrnn show` says of a word of the source language: translations and evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_llrnn.cli.tables import labelled, printable, probability
from fairseq_llrnn.prior.prior import Prior

_LACKING = (" dictionary", "'s training text")  # of words, of pieces


def source_word(prior: Prior, word: str, index: int | None) -> dict[str, Any]:
    """All that is known of a source word. `index`: its number; None: the source dictionary lacks it."""
    known: dict[str, Any] = {"source": word}
    for part in prior.parts:
        known |= part.source_word(prior, word, index) or {}
    return known


def source_word_text(word: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [printable(word["source"])]
    if "translations" in word:
        shown = [f"{printable(row['word'])} {probability(row['probability'])}" for row in word["translations"]]
        lines.append(labelled("translations", shown or ["none"]))
    if "evidence" in word:
        evidence = word["evidence"]
        said = ["none"] if evidence is None else [_evidence_text(evidence["kind"], evidence["words"])]
        lines.append(labelled("evidence", said))
        if not word["known"]:
            lines.append(labelled("", [f"unknown: the source{_LACKING['word' in word]} lacks it"]))
    return "\n".join(lines)


def _evidence_text(kind: str, words: Sequence[str]) -> str:
    return f"{kind}: {' '.join(map(printable, words))}"
