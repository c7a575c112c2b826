"""A world whose model knows terms: evidence_world.py with a prior, forms, a file of terms, and what may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evidence_world import EvidenceWorld
from shell import Result, Shell

FORMS = {"chat": ("chat", "chats", "chatte"), "vache": ("vache", "vaches"), "grand": ("grand", "grande")}
TERMS = "tahc\tchat\n"
SOURCES = ["el tahc tneiv", "enu ehcav tneiv 12", "el tahc ed al ehcav", "Karim tiov 12"]


def written(found: Result) -> dict[int, list[str]]:
    """The best hypothesis of each sentence."""
    return {number: text.split() for number, text in found.best().items()}


class TermWorld:
    """A prior that knows terms, a model that was trained with invented ones, and a file of forms."""

    def __init__(self, evidence: EvidenceWorld, place: Path) -> None:
        self.evidence, self.place = evidence, place
        self.prior, self.forms, self.terms = place / "prior", place / "forms.tsv", place / "terms.tsv"
        rows = (f"{form}\t{lemma}\tNOUN\t_\n" for lemma, forms in FORMS.items() for form in forms)
        self.forms.write_text("".join(rows), encoding="utf-8")
        self.terms.write_text(TERMS, encoding="utf-8")

    @property
    def model(self) -> Path:
        return self.place / "model" / "checkpoint_last.pt"

    def args(self, raw: bool = False) -> list[object]:
        return [*self.evidence.task_args(raw=raw), "--prior", self.prior, "--term-forms", self.forms]

    def make_prior(self, shell: Shell) -> None:
        shell.run(
            "llrnn", "prior", "--dict", self.evidence.data / "dict.tgt.txt", "--top-words", 20, "--suffixes", 2,
            "--shapes", "--evidence", "terms,numbers,names,copies", "--lexical-translation", self.evidence.data,
            "--set", "translations.aligner=ibm1", "--out", self.prior,
        )  # fmt: skip

    def train_args(self, place: Path, raw: bool = True) -> list[object]:
        own = self.evidence.train_args("llrnn_transformer", "lexical", place, raw=raw)
        return [*own, "--prior", self.prior, "--term-forms", self.forms, "--invented-terms", 0.9, "--max-tokens", 512]


def said(words: Sequence[str], lemma: str) -> int:
    return sum(word in FORMS[lemma] for word in words)


BAD = {
    "contradictory": ("tahc\tchat\ntahc\tvache\n", [], "can have one target only"),
    "a part of speech among words": (
        "tahc\tchat | NOUN\n", [],
        "line 1: the target 'chat | NOUN' ends in a part of speech; write the part of speech in the third",
    ),
    "no share": (TERMS, ["--invented-terms", 1], "--invented-terms 1.0: expected a share from 0 to below 1"),
    "another strength": (TERMS, ["--term-strength", "maybe"], "--term-strength maybe: expected must or may"),
    "too long": (
        TERMS + "el\tgrand\ntneiv\tvache\n", ["--max-len-a", 0, "--max-len-b", 2],
        "the shortest one has 3 (3 of them forms of its terms); raise --max-len-b",
    ),
}  # fmt: skip

BAD_LINES = {
    "el tahc\tehcav => vache": "the column 'ehcav => vache': the sentence lacks the phrase",
    "\tchat": "expected a sentence before its terms, found a tab first: 'chat'",
    "el tahc\ttahc | NOUN => chat":
        "the column 'tahc | NOUN => chat': the source 'tahc | NOUN' ends in a part of speech",
    "el tahc\tchat | NOWN": "the column 'chat | NOWN': expected a part of speech, one of ADJ, ADP",
}  # fmt: skip
