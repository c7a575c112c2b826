"""Lexical translations: what the words of a source sentence say of its translation (backgrounds/lexical.py).

Sizes: U source words, V target words.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairseq_llrnn.alignment.translation_table import LexicalTable, is_content_word, is_word
from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.lexical import LexicalBackground
from fairseq_llrnn.files.numbers import LARGEST_SCORE
from fairseq_llrnn.prior.part import BuildContext, Part, SavedPart, register_part

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior


@register_part("lexical")
@dataclass(frozen=True)
class LexicalPart(Part):
    """Translations of the prior's source words, and the weight λ of what they say."""

    table: LexicalTable
    weight: float  # λ, or where it starts
    learned: bool
    aligner: str

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
        }

    def description(self) -> dict[str, Any]:
        return {"weight": self.weight, "learned": self.learned, "aligner": self.aligner}

    @property
    def identity(self) -> str:
        return f"{self.weight!r} {self.learned}"

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
        part = cls(table, weight, learned, aligner)
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

    def background(self, below: Background, context: BuildContext) -> Background:
        prior = context.prior
        words = torch.from_numpy(is_word(prior.symbols))
        counted = torch.from_numpy(is_content_word(prior.source_symbols))
        return LexicalBackground(
            context.class_of, context.num_classes, context.log_weights, self.table, words, counted, self.weight,
            self.learned,
        )  # fmt: skip

    def counts(self) -> dict[str, int]:
        sources = int((np.diff(self.table.offsets) > 0).sum())
        return {"source words": sources, "translations": len(self.table.targets)}

    def lines(self, prior: Prior) -> list[str]:
        weight = f"learned, starting at {self.weight:g}" if self.learned else f"{self.weight:g}"
        return [f"translations of source words, aligned by {self.aligner}", f"weight {weight}"]

    def source_option(self, dictionary: str) -> str:
        return f"--lexical-translation {Path(dictionary).parent}"
