"""How a lemma's part of a lexical background is shared among its forms.

With n(x) how often the text shows form x of lemma ℓ,

    share(x | ℓ)  =  (n(x) + ½)^γ / Σ_x' (n(x') + ½)^γ          over all forms x' of ℓ, those with n = 0 as well

γ = 1: forms are as likely as they are frequent. γ = 0: all alike, and the features of the forms decide, with what the
network makes of them. Between the two, frequent forms are ahead of others by less than they are in the text.

Training is leave-one-out here, too: n(x) is what remains without the sentence at hand. So a form that the text
shows once has, where it is the target, the very share of a form that the text does not show; otherwise the network
would learn to trust a count that no unseen form has.

Sizes: B sentences, V words, E entries (a sentence and a lemma), F entries (a sentence and a form of the lemma).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.alignment.lemma_forms import LemmaForms
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.exact_buffers import ExactBuffers
from fairseq_llrnn.backgrounds.explicit_words import expanded

PSEUDO_COUNT = 0.5


class FormShares(ExactBuffers):
    """Shares of forms; buffers that no checkpoint holds."""

    head_of: Tensor  # (V,)
    starts: Tensor  # (V + 1,)
    words: Tensor  # (entries,) forms
    counts: Tensor  # (entries,)

    def __init__(self, forms: LemmaForms, power: float, dtype: torch.dtype) -> None:
        """power: γ."""
        super().__init__()
        self.power = power
        for name, value in (
            ("head_of", torch.from_numpy(forms.head_of.copy())),
            ("starts", torch.from_numpy(forms.offsets.copy())),
            ("words", torch.from_numpy(forms.forms.copy())),
            ("counts", torch.from_numpy(forms.counts.copy()).to(dtype)),
        ):
            self.register_buffer(name, value, persistent=False)

    def spread(self, keys: Tensor, weights: Tensor, leave_out: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of lemmas as weights of their forms.

        Args:
            keys: (E,) sentence · V + head. weights: (E,). leave_out: (B, T) words of the sentence itself, if it was
                among those that were counted.

        Returns:
            sentence · V + form, weights, and which of the lemmas each is of: (F,).
        """
        size = len(self.head_of)
        sentence, head = keys // size, keys % size
        rows, places = expanded(self.starts[head], self.starts[head + 1] - self.starts[head])
        said = sentence[rows] * size + self.words[places]
        counts = self.counts[places]
        if leave_out is not None:
            counts = (counts - occurrences(leave_out, said, size)).clamp_min(0)
        shares = (counts + PSEUDO_COUNT) ** self.power
        totals = shares.new_zeros(len(keys)).index_add(0, rows, shares)
        return said, weights[rows] * shares / totals[rows], rows


def occurrences(sentences: Tensor, keys: Tensor, size: int) -> Tensor:
    """How often each word (keys: sentence · size + word, any shape) occurs in its sentence (B, T)."""
    first = torch.arange(len(sentences), device=sentences.device).unsqueeze(1) * size
    there, many = torch.unique((first + sentences).flatten(), return_counts=True)  # rising
    place = torch.searchsorted(there, keys).clamp_max(len(there) - 1)
    return torch.where(there[place] == keys, many[place], 0)


def shared_table(table: LexicalTable, forms: LemmaForms, power: float) -> LexicalTable:
    """A table of lemmas as one of words: t(x | s) = Σ_ℓ t(ℓ | s) share(x | ℓ), the whole text counted."""
    sources = np.repeat(np.arange(table.num_sources), np.diff(table.offsets))
    size = len(forms.head_of)
    keys, weights, _ = FormShares(forms, power, torch.float64).spread(
        torch.from_numpy(sources * size + table.targets), torch.from_numpy(table.probabilities.astype(np.float64)), None
    )
    once, which = np.unique(keys.numpy(), return_inverse=True)
    summed = np.bincount(which, weights.numpy(), len(once))
    words = LexicalTable.from_pairs(once // size, once % size, summed, table.num_sources, size)
    return replace(words, links=table.links)
