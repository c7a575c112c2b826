"""What the sentences of a batch say beside b₀: a factor of all words, and more for a few of them.

    b(C; x)  =  b₀(x) (1 − λr)  +  λ e(x)            r, e: of the sentence; e(x) = 0 for most words x (lexical.py)

Sizes: B sentences of a batch, N hypotheses, V words, S signatures, E entries e of a batch, C classes asked for.
B_C(σ) needs one sum over V words for all sentences, and a sparse one for each of them. The entries of a batch are
sorted by sentence · V + rank, where words are ranked by class and, inside it, by b₀: one sorted row finds the entry of
a word and the entries of a class.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.explicit_words import ExplicitWeights, expanded
from fairseq_llrnn.backgrounds.masses import Masses, runs
from fairseq_llrnn.backgrounds.static import StaticBackground


class LexicalMixture(Background):
    """b(C; x) of a batch of sentences. A hypothesis' state is the number of its sentence, (N, 1), and never changes.

    Behind the E entries stands one without meaning, so that what is looked up and not found may point there.
    """

    constant = True

    def __init__(
        self,
        root: StaticBackground,
        rank_of: Tensor,
        keys: Tensor,
        weights: Tensor,
        log_rest: Tensor,
        log_weight: Tensor,
    ) -> None:
        """b₀, and what the sentences say beside it.

        Args:
            rank_of: (V,), the place of a word in `root.ranked_members`.
            keys, weights: (E,) as of `LexicalBackground.entries`.
            log_rest: (B,), log(1 − λr), the factor of b₀. log_weight: a scalar, log λ, that of the weights.
        """
        super().__init__(root.class_of, root.num_classes)
        self.root, self.rank_of = root, rank_of
        self.num_sentences = len(log_rest)
        self.log_rest, self.log_weight, self.entry_weights = log_rest, log_weight, weights
        sentence = keys // len(self.class_of)
        words = root.ranked_members[keys % len(self.class_of)]
        self.entry_classes = sentence * self.num_classes + self.class_of[words]  # shape: (E,), into (B · S,)
        # shape: (B · S,): what b₀ gives to every class, then what the sentence adds to some
        mass = (root.class_log_mass + self.log_rest.unsqueeze(1)).flatten()
        touched, sums = sum_runs(self.entry_classes, weights)
        mixed = torch.logaddexp(mass[touched], sums.log() + log_weight)
        self.class_log_mass = mass.scatter(0, touched, mixed).view(self.num_sentences, self.num_classes)
        base = root.word_log_weight[words] + self.log_rest[sentence]
        self.entry_log_weight = torch.logaddexp(base, weights.log() + log_weight)  # shape: (E,)
        share = self.entry_log_weight - self.class_log_mass.flatten()[self.entry_classes]
        # shape: (E + 1,)
        self.keys = functional.pad(keys, (0, 1), value=self.num_sentences * len(self.class_of))
        self.entry_words = functional.pad(words, (0, 1))
        self.entry_log_share = functional.pad(share, (0, 1))

    def start(self, n: int) -> Tensor:
        """State of one hypothesis per sentence: `n` is the number of sentences."""
        if n != self.num_sentences:
            raise ValueError(f"expected one hypothesis for each of {self.num_sentences} sentences, found {n}")
        return torch.arange(n, device=self.class_of.device).unsqueeze(1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return state

    def masses(self, state: Tensor) -> Masses:
        return Masses(self.class_log_mass.index_select(0, runs(state.squeeze(1))), len(state))

    def log_mass(self, state: Tensor) -> Tensor:
        return self.class_log_mass.index_select(0, state.squeeze(1))

    def log_mass_of(self, state: Tensor, classes: Tensor) -> Tensor:
        return self.class_log_mass[state.squeeze(1), classes]

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        sentence = state.squeeze(1)
        place, has_entry = self._place(sentence, tokens)
        return torch.where(has_entry, self.entry_log_share[place], self._base_share(sentence, tokens))

    def _base_share(self, sentence: Tensor, tokens: Tensor) -> Tensor:
        """As `_share`, for words without an entry."""
        weight = self.root.word_log_weight[tokens]
        mass = self.class_log_mass[sentence, self.class_of[tokens]]
        return (weight + self.log_rest[sentence] - mass).masked_fill(weight.isneginf(), NEGATIVE_INFINITY)

    def _place(self, sentence: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Where among the entries each token belongs, and whether it is there."""
        key = sentence * len(self.class_of) + self.rank_of[tokens]
        place = torch.searchsorted(self.keys, key)
        return place, self.keys[place] == key

    def only_member(self, state: Tensor, classes: Tensor) -> Tensor:
        return self.root.only_member(state, classes)

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        sentence = state.expand_as(words)
        base = self.root.log_mass_without(state, words, taken) + self.log_rest[sentence]
        place, has_entry = self._place(sentence, words)
        hits = torch.bincount(place[has_entry & taken], minlength=len(self.keys))
        hypotheses = torch.bincount(state.squeeze(1), minlength=self.num_sentences + 1)
        if bool(((hits > 0) & (hits != hypotheses[self.keys // len(self.class_of)])).any()):
            return super().log_mass_without(state, words, taken)  # hypotheses of one sentence disagree
        out = hits > 0
        left = self.entry_weights.masked_fill(out[:-1], 0.0)
        sums = left.new_zeros(self.num_sentences * self.num_classes).index_add(0, self.entry_classes, left)
        remaining = sums[sentence * self.num_classes + self.class_of[words]]
        nothing = base.isneginf() & (remaining == 0)  # where logaddexp has no gradient, and λ would get NaN
        return torch.logaddexp(base.masked_fill(nothing, 0.0), remaining.log() + self.log_weight).masked_fill(
            nothing, NEGATIVE_INFINITY
        )

    # ---- words that it lists ----------------------------------------------------------------------------------------

    def root_log_weights(self) -> Tensor | None:
        return self.root.word_log_weight

    def explicit(self, state: Tensor) -> ExplicitWeights | None:
        keys, order, offsets = self._by_word
        sentence = state.squeeze(1)
        rows, places = expanded(offsets[sentence], offsets[sentence + 1] - offsets[sentence])
        words = len(self.class_of)
        return ExplicitWeights(
            num_words=words,
            keys=rows * words + keys[places] % words,
            log_weights=self.entry_log_weight[order[places]],
            constant=self.log_rest[sentence],
            rooted=None,
        )

    @cached_property
    def _by_word(self) -> tuple[Tensor, Tensor, Tensor]:
        """Entries by sentence and word: rising keys sentence · V + word, which entry, (E,) each; offsets (B + 1,)."""
        words = len(self.class_of)
        keys, order = (self.keys[:-1] // words * words + self.entry_words[:-1]).sort()
        sentences = torch.arange(self.num_sentences + 1, device=keys.device)
        return keys, order, torch.searchsorted(keys, sentences * words)

    def log_weights_at(self, state: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        sentence = state.squeeze(1)[rows]
        place, has_entry = self._place(sentence, tokens)
        base = self.root.word_log_weight[tokens] + self.log_rest[sentence]
        return torch.where(has_entry, functional.pad(self.entry_log_weight, (0, 1))[place], base)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    def best_share(self, state: Tensor) -> Tensor:
        return self._best_share.index_select(0, runs(state.squeeze(1)))

    @cached_property
    def _best_share(self) -> Tensor:
        """(B, S): a class' best word is the one that b₀ puts first, or one that the sentence's translations name."""
        every_class = torch.arange(self.num_classes, device=self.class_of.device).unsqueeze(0)
        first, tokens = self.root.best_members(self.class_of[:1], every_class, 1)
        sentence = torch.arange(self.num_sentences, device=self.class_of.device).unsqueeze(1)
        best = self._base_share(sentence, tokens.squeeze(-1))
        best = best.masked_fill(first.squeeze(-1).isneginf(), NEGATIVE_INFINITY).flatten()
        best = best.scatter_reduce(0, self.entry_classes, self.entry_log_share[:-1], reduce="amax")
        return best.view(self.num_sentences, self.num_classes)

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        # an entry only adds to what b₀ gives: the best words are among the k best by b₀ and the entries of the class
        sentence = state.unsqueeze(-1)  # shape: (N, 1, 1)
        first, tokens = self.root.best_members(state, classes, k)  # shape: (N, C, k)
        shares = self._base_share(sentence, tokens).masked_fill(first.isneginf(), NEGATIVE_INFINITY)
        shares = shares.masked_fill(self._place(sentence, tokens)[1], NEGATIVE_INFINITY)
        key = sentence.squeeze(-1) * len(self.class_of) + self.root.class_starts[classes]
        begin = torch.searchsorted(self.keys, key).unsqueeze(-1)  # shape: (N, C, 1)
        size = self.root.class_starts[classes + 1] - self.root.class_starts[classes]
        end = torch.searchsorted(self.keys, key + size).unsqueeze(-1)
        step = torch.arange(int((end - begin).max()), device=classes.device)
        where = torch.minimum(begin + step, end)  # shape: (N, C, ≤ E), what is past the end is masked
        spoken_of = self.entry_log_share[where].masked_fill(begin + step >= end, NEGATIVE_INFINITY)
        values, best = torch.cat([shares, spoken_of], -1).topk(k, -1)
        chosen = torch.cat([tokens, self.entry_words[where]], -1).gather(-1, best)
        return values, chosen.masked_fill(values.isneginf(), 0)

    # ---- all words (only where asked for) ---------------------------------------------------------------------------

    def log_weights(self, state: Tensor) -> Tensor:
        return self._log_weights[state.squeeze(1)]

    def log_shares(self, state: Tensor) -> Tensor:
        return self._log_shares[state.squeeze(1)]

    @cached_property
    def _log_weights(self) -> Tensor:
        """(B, V)"""
        base = self.root.word_log_weight + self.log_rest.unsqueeze(1)
        words = len(self.class_of)
        place = self.keys[:-1] // words * words + self.entry_words[:-1]
        return base.flatten().scatter(0, place, self.entry_log_weight).view_as(base)

    @cached_property
    def _log_shares(self) -> Tensor:
        """(B, V)"""
        weights = self._log_weights
        return (weights - self.class_log_mass[:, self.class_of]).masked_fill(weights.isneginf(), NEGATIVE_INFINITY)


def sum_runs(keys: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Rising keys (E,) with repetitions, and their weights -> each key once, and the sum of its weights."""
    once, which = torch.unique_consecutive(keys, return_inverse=True)
    return once, weights.new_zeros(len(once)).index_add(0, which, weights)
