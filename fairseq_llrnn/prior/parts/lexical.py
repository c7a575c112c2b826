"""Lexical translations: what the words of a source sentence say of its translation (backgrounds/lexical.py).

Sizes: U source words, V target words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairseq_llrnn.alignment.lemma_forms import LemmaForms
from fairseq_llrnn.alignment.translation_table import LexicalTable, is_content_word, is_word
from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.form_shares import FormShares, shared_table
from fairseq_llrnn.backgrounds.lexical import LexicalBackground
from fairseq_llrnn.files.numbers import LARGEST_SCORE
from fairseq_llrnn.prior.part import BuildContext, Part, SavedPart, register_part

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior


# The arrays of the forms of lemmas, in the order of LemmaForms.
FORMS = {"head_of": np.int64, "form_offsets": np.int64, "forms": np.int64, "form_counts": np.float32}
LARGEST_POWER = 1.0


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

    is_base = True
    knows_source = True
    called = "lexical translations were"

    def arrays(self) -> dict[str, np.ndarray]:
        table = self.table
        return {
            "offsets": table.offsets,
            "targets": table.targets,
            "probabilities": table.probabilities,
            "links": table.links,
            **({} if self.forms is None else dict(zip(FORMS, _arrays(self.forms), strict=True))),
        }

    def description(self) -> dict[str, Any]:
        known = {"weight": self.weight, "learned": self.learned, "aligner": self.aligner}
        return known if self.forms is None else {**known, "form_power": self.form_power}

    @property
    def identity(self) -> str:
        of_forms = "" if self.forms is None else f" {self.form_power!r}"
        return f"{self.weight!r} {self.learned}{of_forms}"

    @cached_property
    def word_table(self) -> LexicalTable:
        """t(word | s), for people."""
        return self.table if self.forms is None else shared_table(self.table, self.forms, self.form_power)

    @classmethod
    def read(cls, saved: SavedPart) -> LexicalPart:
        table = LexicalTable(
            saved.array("offsets", np.int64),
            saved.array("targets", np.int64),
            saved.array("probabilities", np.float32),
            saved.array("links", np.float32),
        )
        weight, learned, aligner = (saved.description[name] for name in ("weight", "learned", "aligner"))
        if not (isinstance(weight, float) and isinstance(learned, bool) and isinstance(aligner, str)):
            raise ValueError("the lexical translations are described by something else than weight, learned, aligner")
        forms, power = None, saved.description.get("form_power")
        if power is not None:
            if not isinstance(power, float):
                raise ValueError("the forms of lemmas are described by something else than a power")
            forms = LemmaForms(*(saved.array(name, dtype) for name, dtype in FORMS.items()))
        part = cls(table, weight, learned, aligner, forms, power or 0.0)
        part.check(is_word(saved.prior.source_symbols), is_word(saved.prior.symbols) & saved.prior.allowed)
        return part

    def check(self, sources: np.ndarray, possible: np.ndarray) -> None:
        """Raise ValueError unless all is sound.

        Args:
            sources: (U,) bool, the source tokens that may have translations. possible: (V,) bool, the target words that
                may be one.
        """
        self.table.check(possible)
        if self.table.num_sources != len(sources):
            raise ValueError("the lexical translations and the source words differ in number")
        if np.diff(self.table.offsets)[~sources].any():
            raise ValueError("the lexical translations hold some of a special symbol")
        used, links = np.diff(self.table.offsets) > 0, self.table.links
        if len(links) != len(used) or not ((links[used] > 0).all() and (links <= LARGEST_SCORE).all()):
            raise ValueError("the lexical translations were estimated from numbers of links that are none")
        if not (0.0 <= self.weight < 1.0 and (self.weight > 0.0 or not self.learned)):
            raise ValueError(f"the lexical translations have the weight {self.weight}, which is none")
        if self.forms is not None:
            self.forms.check(possible)
            if not (self.forms.head_of[self.table.targets] == self.table.targets).all():
                raise ValueError("the lexical translations hold a lemma of which there are no forms")
            if not 0.0 <= self.form_power <= LARGEST_POWER:
                raise ValueError(f"the forms of lemmas have the power {self.form_power}, which is none")

    def background(self, below: Background, context: BuildContext) -> Background:
        prior = context.prior
        words = torch.from_numpy(is_word(prior.symbols))
        counted = torch.from_numpy(is_content_word(prior.source_symbols))
        shares = None if self.forms is None else FormShares(self.forms, self.form_power, context.log_weights.dtype)
        return LexicalBackground(
            context.class_of, context.num_classes, context.log_weights, self.table, words, counted, self.weight,
            self.learned, shares,
        )  # fmt: skip

    def counts(self) -> dict[str, int]:
        sources = int((np.diff(self.table.offsets) > 0).sum())
        known = {"source words": sources, "translations": len(self.table.targets)}
        if self.forms is None:
            return known
        lemmas = int((np.diff(self.forms.offsets) > 0).sum())
        return {**known, "lemmas": lemmas, "forms of lemmas": len(self.forms.forms)}

    def lines(self, prior: Prior) -> list[str]:
        weight = f"learned, starting at {self.weight:g}" if self.learned else f"{self.weight:g}"
        said = [f"translations of source words, aligned by {self.aligner}", f"weight {weight}"]
        return said + ([] if self.forms is None else [f"of lemmas; counts of forms to the power {self.form_power:g}"])

    def source_option(self, dictionary: str) -> str:
        return f"--lexical-translation {Path(dictionary).parent}"


def _arrays(forms: LemmaForms) -> tuple[np.ndarray, ...]:
    return forms.head_of, forms.offsets, forms.forms, forms.counts
