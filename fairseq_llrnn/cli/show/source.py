"""What `llrnn show` says of a word of the source language: translations and evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_llrnn.cli.tables import labelled, printable, probability
from fairseq_llrnn.prior.parts import EvidencePart, LexicalPart
from fairseq_llrnn.prior.parts.evidence import pieces_of
from fairseq_llrnn.prior.prior import Prior

_LACKING = (" dictionary", "'s training text")  # of words, of pieces


def source_word(prior: Prior, word: str, index: int | None) -> dict[str, Any]:
    """All that is known of a source word. `index`: its number; None: the source dictionary lacks it."""
    known: dict[str, Any] = {"source": word}
    lexical, evidence = prior.find(LexicalPart), prior.find(EvidencePart)
    if lexical is not None:
        row = [] if index is None else lexical.word_table.row(index)
        known["translations"] = [{"word": prior.symbols[x], "probability": p} for x, p in row]
    if evidence is not None:
        pieces = pieces_of(prior)
        spelt = word if pieces is None or index is None else pieces.bare(word)
        found = evidence.find(spelt, frozenset(prior.source_symbols))
        known["known"] = index is not None
        if evidence.known_words is not None:
            known |= {"known": spelt in evidence.known_words, "word": spelt}
        known["evidence"] = None if found is None else {"kind": found.kind, "words": list(found.words)}
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
