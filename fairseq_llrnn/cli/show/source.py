"""What `llrnn show` says of the source language: translations and evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_llrnn.cli.tables import labelled, many, printable, probability
from fairseq_llrnn.prior.evidence import source_words
from fairseq_llrnn.prior.parts import EvidencePart, LexicalPart
from fairseq_llrnn.prior.prior import Prior


def summary(prior: Prior) -> dict[str, Any]:
    """What a prior knows of the source language, as a whole; {} for nothing."""
    known: dict[str, Any] = {}
    lexical, evidence = prior.find(LexicalPart), prior.find(EvidencePart)
    if lexical is not None:
        known["lexical"] = lexical.description()
    if evidence is not None:
        known["evidence"] = {
            "weight": evidence.rules.weight,
            "source_words": source_words(prior),
            "mapped": len(evidence.rules.mapping),
        }
    return known


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """The same for people, below the background."""
    lines: list[str] = []
    if "lexical" in summary:
        lexical, counts = summary["lexical"], summary["counts"]
        weight = f"learned, starting at {lexical['weight']:g}" if lexical["learned"] else f"{lexical['weight']:g}"
        lines += [
            f"            and what the source says: {many(counts['translations'], 'translation')} of "
            f"{many(counts['source words'], 'source word')}, aligned by {printable(lexical['aligner'])};",
            f"            their weight: {weight}",
        ]
    if "evidence" in summary:
        evidence = summary["evidence"]
        lines += [
            f"            and strings of the source, their weight: {evidence['weight']:g};",
            f"            among the source words are {kinds_text(evidence['source_words'])}",
        ]
    return lines


def kinds_text(source_words: Mapping[str, int]) -> str:
    """`numbers 120, names 33, copies (unknown words)`."""
    return ", ".join(
        "copies (unknown words)" if kind == "copies" else f"{kind} {count:,}" for kind, count in source_words.items()
    )


def source_word(prior: Prior, word: str, index: int | None) -> dict[str, Any]:
    """All that is known of a source word. `index`: its number; None: the source dictionary lacks it."""
    known: dict[str, Any] = {"source": word}
    lexical, evidence = prior.find(LexicalPart), prior.find(EvidencePart)
    if lexical is not None:
        row = [] if index is None else lexical.table.row(index)
        known["translations"] = [{"word": prior.symbols[x], "probability": p} for x, p in row]
    if evidence is not None:
        found = evidence.rules.find(word, frozenset(prior.source_symbols))
        known["known"] = index is not None
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
            lines.append(labelled("", ["unknown: the source dictionary lacks it"]))
    return "\n".join(lines)


def _evidence_text(kind: str, words: Sequence[str]) -> str:
    return f"{kind}: {' '.join(map(printable, words))}"
