"""Copied words: texts spelled in characters may hold the words of their source (backgrounds/copied_words.py)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fairseq_llrnn.automata.characters import BETWEEN
from fairseq_llrnn.backgrounds.automaton import AutomatonBackground
from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.copied_words import CopiedWords, target_symbols
from fairseq_llrnn.prior.part import BuildContext, Part, SavedPart, register_part
from fairseq_llrnn.prior.parts.automaton import AutomatonPart


@register_part("copied_words")
@dataclass(frozen=True)
class CopiedWordsPart(Part):
    """Over an automaton of words spelled in characters."""

    knows_source = True
    called = "words to copy were"

    @classmethod
    def read(cls, saved: SavedPart) -> CopiedWordsPart:
        below = saved.prior.find(AutomatonPart)
        if below is None or below.made_from != "automaton" or below.automaton.num_states <= BETWEEN:
            raise ValueError("the automaton is none of words spelled in characters, and can hold none of a source")
        return cls()

    def background(self, below: Background, context: BuildContext) -> Background:
        """With the words of a source, where there is one."""
        if not (context.has_source and isinstance(below, AutomatonBackground)):
            return below
        prior = context.prior
        return CopiedWords(below, torch.tensor(target_symbols(prior.source_symbols, prior.symbols)))
