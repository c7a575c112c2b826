"""The parts of a lexical background: shares of the forms of a lemma, and translations of source tokens.

With n(x) the count of form x of lemma ℓ in the text,

    share(x | ℓ)  =  (n(x) + ½)^γ / Σ_x' (n(x') + ½)^γ          over all forms x' of ℓ, also those with n = 0

γ = 1: forms are as likely as they are frequent. γ = 0: all forms are equal, and their features decide in the network.
Between the two, differences of frequency count less than in the text.

Training is leave-one-out: n(x) excludes the current sentence. So a form that occurs once has, as the target, the share
of an unseen form. Otherwise the network would learn to trust counts that unseen forms do not have.

Sizes: B sentences, V words, E entries (a sentence and a lemma), F entries (a sentence and a form of the lemma).

`SourceRows` has the translations of source tokens into target units. A unit is a word of the target or a lemma. A token
s has the row n(s, ·) of its word and, with source lemmas (alignment/source_lemmas.py), the row n(l, ·) of its lemma l.
With n(s) the sum of a row,

    t(u | s)  =  (n(s, u) + κ n(l, u) / n(l)) / (n(s) + κ)         n(s, u) / n(s) if n(l) = 0, or without lemmas

Training is leave-one-out. A sentence with the row's word or lemma in a places and the unit in b places has contributed
at most min(a, b) links, because each connects one place with one. This number is subtracted from n(s, u) and n(l, u),
down to 0, before the division. So t is an estimate from the other sentences, and a word that occurs in no other
sentence uses its lemma.

Sizes: B sentences of length L, T target length, V target words, U source words, R tokens' rows (L, or 2 L with lemmas),
E links.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.alignment.source_lemmas import LemmaForms, SourceLemmas
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.class_weights import expanded
from fairseq_llrnn.backgrounds.exact_buffers import ExactBuffers

PSEUDO_COUNT = 0.5


class FormShares(ExactBuffers):
    """Shares of forms, as buffers outside checkpoints."""

    head_of: Tensor  # (V,)
    starts: Tensor  # (V + 1,)
    words: Tensor  # (entries,) forms
    counts: Tensor  # (entries,)

    def __init__(self, forms: LemmaForms, power: float, dtype: torch.dtype) -> None:
        """power: γ."""
        super().__init__()
        self.power = power
        self.keep(
            head_of=torch.from_numpy(forms.head_of.copy()),
            starts=torch.from_numpy(forms.offsets.copy()),
            words=torch.from_numpy(forms.forms.copy()),
            counts=torch.from_numpy(forms.counts.copy()).to(dtype),
        )

    def spread(self, keys: Tensor, weights: Tensor, leave_out: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Distribute the weights of lemmas over their forms.

        Args:
            keys: (E,) sentence · V + head. weights: (E,). leave_out: (B, T) words of the current sentences, if they
                were counted.

        Returns:
            sentence · V + form, weights, and the index of each one's lemma: (F,).
        """
        size = len(self.head_of)
        sentence, head = keys // size, keys % size
        rows, places = expanded(self.starts[head], self.starts[head + 1] - self.starts[head])
        form_keys = sentence[rows] * size + self.words[places]
        counts = self.counts[places]
        if leave_out is not None:
            counts = (counts - occurrences(leave_out, form_keys, size)).clamp_min(0)
        shares = (counts + PSEUDO_COUNT) ** self.power
        totals = shares.new_zeros(len(keys)).index_add(0, rows, shares)
        return form_keys, weights[rows] * shares / totals[rows], rows


def occurrences(sentences: Tensor, keys: Tensor, size: int) -> Tensor:
    """Count each word (keys: sentence · size + word, any shape) in its sentence (B, T)."""
    first = torch.arange(len(sentences), device=sentences.device).unsqueeze(1) * size
    distinct, counts = torch.unique((first + sentences).flatten(), return_counts=True)  # ascending
    place = torch.searchsorted(distinct, keys).clamp_max(len(distinct) - 1)
    return torch.where(distinct[place] == keys, counts[place], 0)


def shared_table(table: LexicalTable, forms: LemmaForms, power: float) -> LexicalTable:
    """Convert a table of lemmas to one of words: t(x | s) = Σ_ℓ t(ℓ | s) share(x | ℓ), with counts of the whole
    text.
    """
    sources = np.repeat(np.arange(table.num_sources), np.diff(table.offsets))
    size = len(forms.head_of)
    keys, weights, _ = FormShares(forms, power, torch.float64).spread(
        torch.from_numpy(sources * size + table.targets), torch.from_numpy(table.probabilities.astype(np.float64)), None
    )
    distinct, index = np.unique(keys.numpy(), return_inverse=True)
    summed = np.bincount(index, weights.numpy(), len(distinct))
    words = LexicalTable.from_pairs(distinct // size, distinct % size, summed, table.num_sources, size)
    return replace(words, links=table.links)


LEAST_LINKS = 1e-5  # smaller numbers are rounding errors of links from the current sentence alone


class SourceRows(ExactBuffers):
    """Rows of links, as buffers outside checkpoints."""

    starts: Tensor  # (rows + 1,); U rows of words, then U rows of lemmas
    units: Tensor  # (entries,)
    links: Tensor  # (entries,) expected links
    unit_of: Tensor  # (V,)
    lemma_row_of: Tensor  # (U,), or (0,) without lemmas

    def __init__(self, table: LexicalTable, unit_of: Tensor, lemmas: SourceLemmas | None, dtype: torch.dtype) -> None:
        """unit_of: (V,) the unit of every word. The tables' targets are mapped by it, too."""
        super().__init__()
        tables = [table] if lemmas is None else [table, lemmas.table]
        self.pseudo_links = 0.0 if lemmas is None else lemmas.pseudo_links
        sizes = torch.cat([torch.from_numpy(t.offsets).diff() for t in tables])
        row = torch.zeros(0, dtype=torch.long)
        if lemmas is not None:
            row = table.num_sources + torch.from_numpy(lemmas.head_of.copy())
        self.keep(
            starts=torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
            units=unit_of[torch.cat([torch.from_numpy(t.targets) for t in tables])],
            links=torch.cat([torch.from_numpy(t.expected_links) for t in tables]).to(dtype),
            unit_of=unit_of,
            lemma_row_of=row,
        )

    def token_rows(self, source: Tensor, leave_out: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return translations of each token into units. The two rows of a token are separate.

        Args:
            source: (B, L). leave_out: (B, T), the target of each sentence if it was in the text of the links.

        Returns:
            Keys sentence · V + unit, t (or a row's part of it) and tokens sentence · L + place, (E,) each, and whether
            a token has translations, (B, L) bool.
        """
        batch, length = source.shape
        rows = torch.cat([source, self.lemma_row_of[source]], 1) if len(self.lemma_row_of) else source  # shape: (B, R)
        starts = self.starts[rows].flatten()
        of_row, places = expanded(starts, self.starts[rows.flatten() + 1] - starts)
        sentence = of_row // rows.size(1)
        keys, links = sentence * len(self.unit_of) + self.units[places], self.links[places]
        if leave_out is not None:
            # shape: (E,), counts of the row's word or lemma, and of the unit, in the sentence
            numbered = rows + torch.arange(batch, device=rows.device).unsqueeze(1) * len(self.starts)
            _, index, counts = numbered.flatten().unique(return_inverse=True, return_counts=True)
            links = links - torch.minimum(
                counts[index][of_row], occurrences(self.unit_of[leave_out], keys, len(self.unit_of))
            )
            links = links.masked_fill(links < LEAST_LINKS, 0.0)
        totals = links.new_zeros(rows.numel()).index_add(0, of_row, links).view_as(rows)  # shape: (B, R)
        weights = self._weights(totals, length)
        shares = links * (weights / totals.clamp_min(torch.finfo(links.dtype).tiny)).flatten()[of_row]
        token = sentence * length + of_row % rows.size(1) % length
        return keys, shares, token, (totals.view(batch, -1, length) > 0).any(1)

    def _weights(self, totals: Tensor, length: int) -> Tensor:
        """Return the weights of rows, given their numbers of links: (B, R). A token's weights sum to one if it
        has links.
        """
        of_words, shared = totals[:, :length], totals[:, length:]
        has_links = (of_words > 0).to(of_words.dtype)
        if not shared.size(1):
            return has_links
        word_weight = torch.where(shared > 0, of_words / (of_words + self.pseudo_links), has_links)
        return torch.cat([word_weight, (1 - word_weight) * (shared > 0)], 1)
