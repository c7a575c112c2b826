"""Lexical translations: what the words of a source sentence say of its translation (backgrounds/lexical.py).

Sizes: U source words, V target words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn.alignment.source_lemmas import LemmaForms, SourceLemmas
from fairseq_llrnn.alignment.translation_table import LexicalTable, is_content_word, is_word
from fairseq_llrnn.prior.part import BuildContext, Facts, Part, SavedPart, register_part

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.base import Background
    from fairseq_llrnn.prior.prior import Prior


# The arrays of a table, in the order of LexicalTable.
TABLE = {"offsets": np.int64, "targets": np.int64, "probabilities": np.float32, "links": np.float32}
# Those of the lemmas of source words: their heads, and a table.
LEMMAS = {"source_head_of": np.int64, **{f"source_lemma_{name}": dtype for name, dtype in TABLE.items()}}
# The arrays of the forms of lemmas, in the order of LemmaForms.
FORMS = {"head_of": np.int64, "form_offsets": np.int64, "forms": np.int64, "form_counts": np.float32}
LARGEST_POWER = 1.0
SHOWN = 8  # source words that translate into a word


@register_part("lexical")
@dataclass(frozen=True)
class LexicalPart(Part):
    """Translations of the prior's source words, and the weight λ of what they say."""

    table: LexicalTable  # of words; of lemmas, where there are `forms`
    weight: float  # λ, or where it starts
    learned: bool
    aligner: str
    forms: LemmaForms | None = None
    form_power: float = 0.0  # γ: how much the counts of a lemma's forms count for their shares
    source_lemmas: SourceLemmas | None = None  # what rare forms of the source fall back on

    is_base = True
    knows_source = True
    called = "lexical translations were"

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = dict(zip(TABLE, _arrays_of(self.table), strict=True))
        if self.forms is not None:
            arrays |= zip(FORMS, _arrays_of(self.forms), strict=True)
        if self.source_lemmas is not None:
            of_lemmas = self.source_lemmas.head_of, *_arrays_of(self.source_lemmas.table)
            arrays |= zip(LEMMAS, of_lemmas, strict=True)
        return arrays

    def description(self) -> dict[str, Any]:
        description = {"weight": self.weight, "learned": self.learned, "aligner": self.aligner}
        if self.forms is not None:
            description["form_power"] = self.form_power
        if self.source_lemmas is not None:
            description["source_pseudo_links"] = self.source_lemmas.pseudo_links
        return description

    @property
    def identity(self) -> str:
        of_forms = "" if self.forms is None else f" {self.form_power!r}"
        of_lemmas = "" if self.source_lemmas is None else f" back-off {self.source_lemmas.pseudo_links!r}"
        return f"{self.weight!r} {self.learned}{of_forms}{of_lemmas}"

    @property
    def translations(self) -> LexicalPart:
        return self

    def word(self, prior: Prior, index: int) -> Facts:
        table = self.word_table
        entries = np.flatnonzero(table.targets == index)
        best = entries[np.argsort(-table.probabilities[entries], kind="stable")][:SHOWN]
        sources = np.searchsorted(table.offsets, best, side="right") - 1
        facts = zip(sources.tolist(), table.probabilities[best].tolist(), strict=True)
        return {"translates": [(prior.source_symbols[s], p) for s, p in facts]}

    def source_word(self, prior: Prior, word: str, index: int | None) -> Facts:
        row = [] if index is None else self.word_table.row(index)
        return {"translations": [(prior.symbols[x], p) for x, p in row]}

    @cached_property
    def unit_table(self) -> LexicalTable:
        """t(word | s), or t(lemma | s) where there are `forms`; what the lemma of s says is in it."""
        return self.table if self.source_lemmas is None else self.source_lemmas.mixed(self.table)

    @cached_property
    def word_table(self) -> LexicalTable:
        """t(word | s), for people."""
        if self.forms is None:
            return self.unit_table
        from fairseq_llrnn.backgrounds.source import shared_table

        return shared_table(self.unit_table, self.forms, self.form_power)

    @classmethod
    def read(cls, saved: SavedPart) -> LexicalPart:
        table = LexicalTable(*(saved.array(name, dtype) for name, dtype in TABLE.items()))
        weight, learned, aligner = saved.values("the lexical translations are", weight=float, learned=bool, aligner=str)
        forms, lemmas, power = None, None, 0.0
        if "form_power" in saved.description:
            [power] = saved.values("the forms of lemmas are", form_power=float)
            forms = LemmaForms(*(saved.array(name, dtype) for name, dtype in FORMS.items()))
        if "source_pseudo_links" in saved.description:
            [pseudo_links] = saved.values("the lemmas of source words are", source_pseudo_links=float)
            head_of, *of_lemmas = (saved.array(name, dtype) for name, dtype in LEMMAS.items())
            lemmas = SourceLemmas(head_of, LexicalTable(*of_lemmas), pseudo_links)
        part = cls(table, weight, learned, aligner, forms, power, lemmas)
        part.check(is_word(saved.prior.source_symbols), is_word(saved.prior.symbols) & saved.prior.allowed)
        return part

    def check(self, sources: np.ndarray, possible: np.ndarray) -> None:
        """Raise ValueError unless all is sound.

        Args:
            sources: (U,) bool, the source tokens that may have translations. possible: (V,) bool, the target words that
                may be one.
        """
        self.table.check(possible)
        self.table.check_links(sources)
        if self.source_lemmas is not None:
            self.source_lemmas.check(sources, possible)
        if not (0.0 <= self.weight < 1.0 and (self.weight > 0.0 or not self.learned)):
            raise ValueError(f"the lexical translations have the weight {self.weight}, which is none")
        if self.forms is not None:
            self.forms.check(possible)
            for table in (self.table, *([] if self.source_lemmas is None else [self.source_lemmas.table])):
                if not (self.forms.head_of[table.targets] == table.targets).all():
                    raise ValueError("the lexical translations hold a lemma of which there are no forms")
            if not 0.0 <= self.form_power <= LARGEST_POWER:
                raise ValueError(f"the forms of lemmas have the power {self.form_power}, which is none")

    def background(self, below: Background, context: BuildContext) -> Background:
        import torch

        from fairseq_llrnn.backgrounds.lexical import LexicalBackground
        from fairseq_llrnn.backgrounds.source import FormShares

        prior = context.prior
        words = torch.from_numpy(is_word(prior.symbols))
        counted = torch.from_numpy(is_content_word(prior.source_symbols))
        shares = None if self.forms is None else FormShares(self.forms, self.form_power, context.log_weights.dtype)
        return LexicalBackground(
            context.class_of, context.num_classes, context.log_weights, self.table, words, counted, self.weight,
            self.learned, shares, self.source_lemmas,
        )  # fmt: skip

    def counts(self) -> dict[str, int]:
        sources = int((np.diff(self.table.offsets) > 0).sum())
        counts = {"source words": sources, "translations": len(self.table.targets)}
        if self.source_lemmas is not None:
            table = self.source_lemmas.table
            counts["source lemmas"] = int((np.diff(table.offsets) > 0).sum())
            counts["translations of source lemmas"] = len(table.targets)
        if self.forms is None:
            return counts
        lemmas = int((np.diff(self.forms.offsets) > 0).sum())
        return {**counts, "lemmas": lemmas, "forms of lemmas": len(self.forms.forms)}

    def lines(self, prior: Prior) -> list[str]:
        weight = f"learned, starting at {self.weight:g}" if self.learned else f"{self.weight:g}"
        lines = [f"translations of source words, aligned by {self.aligner}", f"weight {weight}"]
        if self.source_lemmas is not None:
            lines.append(f"rare source words as their lemmas, of {self.source_lemmas.pseudo_links:g} links more")
        return lines + ([] if self.forms is None else [f"of lemmas; counts of forms to the power {self.form_power:g}"])

    def source_option(self, dictionary: str) -> str:
        return f"--lexical-translation {Path(dictionary).parent}"


def _arrays_of(arrays: LexicalTable | LemmaForms) -> Iterator[np.ndarray]:
    return (getattr(arrays, field.name) for field in fields(arrays))
