"""A prior of a handful of pieces whose evidence has terms, in both conventions, and terms over it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.evidence_part import evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, Recipe, TranslationOptions
from fairseq_llrnn.systems.terms.terms import Terms
from fairseq_llrnn.systems.terms.tsv_file import TermEntry

PIECES = {
    "sentencepiece": ("▁a", "▁b", "▁An", "▁", "▁ab", "n", "a", "b"),
    "bpe": ("a", "b", "An@@", "n", "ab", "a@@", "b@@", "n@@"),
}
TEXT = ["a b a", "aba ab ab", "Ann a"]  # words of it are what a training text spells
FORMS = {"ab": ("ab", "aba", "abb"), "Ann": ("Ann", "Anna")}


def in_pieces(line: str, convention: str) -> str:
    """A line in pieces: single characters, but for words that are a piece; a special symbol stays."""
    style, found = CONVENTIONS[convention], []
    for word in line.split():
        if word in SPECIALS or style.whole(word) in PIECES[convention]:
            found.append(word if word in SPECIALS else style.whole(word))
            continue
        parts = ["An", *word[2:]] if word.startswith("An") else list(word)
        marks = [style.mark_begins == (i == 0) if style.mark_begins else i < len(parts) - 1 for i in range(len(parts))]
        found += [style.mark(part) if mark else part for part, mark in zip(parts, marks, strict=True)]
    return " ".join(found)


def prior_of(convention: str, folder: Path) -> Prior:
    symbols, path = (*SPECIALS, *PIECES[convention]), folder / "text"
    path.write_text("".join(f"{in_pieces(line, convention)}\n" for line in TEXT), encoding="utf-8")
    translations = TranslationOptions(ParallelText.read(path, path, symbols, symbols), aligner="ibm1")
    chosen = EvidenceOptions(("terms", "numbers"))
    return build_prior(symbols, Recipe(pieces=convention, text=[path], translations=translations, evidence=chosen))


@cache
def of_session(convention: str) -> Prior:
    with TemporaryDirectory() as folder:
        return prior_of(convention, Path(folder))


def word_forms() -> WordForms:
    known = WordForms()
    for lemma, some in FORMS.items():
        for form in some:
            known.add(lemma, form)
    return known


def entry(source: str, target: str, *forms: str) -> TermEntry:
    return TermEntry(tuple(source.split()), target, None, forms, "terms.tsv, line 1")


ENTRIES = [entry("aba", "ab"), entry("a aba", "Ann"), entry("b", "ab Ann")]


def make(prior: Prior, *entries: TermEntry, must: bool = True, **options: object) -> tuple[PieceTable, Terms]:
    table = evidence_table(prior)
    assert isinstance(table, PieceTable)
    return table, Terms(table, word_forms(), entries or ENTRIES, must=must, **options)  # type: ignore[arg-type]


def batch(table: PieceTable, terms: Terms, lines: Sequence[str], cells: Sequence[str] = ()) -> torch.Tensor:
    """Lines of words, in pieces; the last one has the cells."""
    rows = []
    for number, line in enumerate(lines):
        ids = [table.source_index(piece) for piece in in_pieces(line, table.convention.name).split()]
        rows.append(terms.marked(ids, cells if number == len(lines) - 1 else ()))
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[1] * (longest - len(row))] for row in rows])
