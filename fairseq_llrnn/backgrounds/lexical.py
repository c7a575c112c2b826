"""The background of a translation: translations of the words of the source sentence, mixed with b₀.

Sizes: B sentences of a batch, L source length, T time, V target words, U source words, E sparse entries of a batch.
For a source sentence C with n words s (all its tokens but <s>, <pad> and </s>), and 0 ≤ λ < 1,

    b(C; x)  =  (1−λ) b₀(x)  +  λ · 1/n Σ_s t'(x | s)                                               (b₀ where n = 0)

t' is the table t(x | s) with three additions, so that b is as normalised as b₀ for every sentence:

* </s> and <unk> keep the mass that b₀ gives them, exactly: no word of the source says when a sentence ends. With m the
  mass that b₀ leaves to words, t'(x | s) = m t(x | s) for a word x and t'(x | s) = b₀(x) for </s> and <unk>.
* A source word of which the table knows nothing (<unk>, above all) counts as b₀: t'(x | s) = b₀(x).
* A word that b₀ forbids is in no table, and stays forbidden.

Training is leave-one-out: of the links that t(x | s) was estimated from, those of the sentence at hand are taken away
(`given(source, leave_out)`, source.py). What a text was estimated from is known of no other text: a word that
occurs once would be predicted with certainty in training, never in use, and the network would learn to rely on it.

A rare source word may say what its lemma says (source.py). The table may be one of lemmas of the target:
t'(x | s) = m Σ_ℓ t(ℓ | s) share(x | ℓ), so that forms are reached which no bitext shows (source.py). A lemma is
the id of one of its forms.

At the beginning of training, t may also be hidden from a share of the sentences (`hidden_share`), whose background is
then b₀: a network that has most of the answer from t need not learn where in the source to look.

With the share r of known words in the sentence this is b₀(x) (1 − λr) everywhere plus λ e(x) at few words: those in the
table, </s> and <unk> (lexical_mixture.py).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairseq_llrnn.alignment.source_lemmas import SourceLemmas
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.lexical_mixture import LexicalMixture, sum_runs
from fairseq_llrnn.backgrounds.masses import log_odds
from fairseq_llrnn.backgrounds.source import FormShares, SourceRows
from fairseq_llrnn.backgrounds.static import StaticBackground
from fairseq_llrnn.features.dictionary import SPECIALS, UNK


class LexicalBackground(StaticBackground):
    """b(C; x). By itself it is b₀; `given(source)` is the background of a batch of source sentences."""

    is_content_word: Tensor  # (U,) bool
    rank_of: Tensor  # (V,) the place of a word in ranked_members
    word_mass: Tensor  # scalar, m
    kept_ranks: Tensor  # (≤ 2,) ranks of the words that keep their mass
    kept_weights: Tensor  # (≤ 2,) b₀ of them
    weight_logit: Tensor  # scalar, log λ/(1−λ); a parameter where λ is learned

    def __init__(
        self,
        class_of: Tensor,
        num_classes: int,
        log_weights: Tensor,
        table: LexicalTable,
        words: Tensor,
        is_content_word: Tensor,
        weight: float,
        learned: bool,
        forms: FormShares | None = None,
        source_lemmas: SourceLemmas | None = None,
    ) -> None:
        """class_of, log_weights: (V,) as in StaticBackground.

        Args:
            table: translations; none of them forbidden by b₀ or outside `words` (LexicalTable.check).
            words: (V,) bool, the target words that the table may hold; all others keep their mass.
            is_content_word: (U,) bool, the source tokens that count in the mean.
            weight: λ, or where it starts if it is `learned`.
            forms: how a lemma is shared among its forms; None: the table is one of words.
            source_lemmas: what rare source words fall back on.
        """
        super().__init__(class_of, num_classes, log_weights)
        rank_of = torch.empty_like(class_of)
        rank_of[self.ranked_members] = torch.arange(len(class_of))
        self.forms = forms
        units = rank_of if forms is None else forms.head_of  # shape: (V,); a translation is a word's rank, or a lemma
        self.rows = SourceRows(table, units, source_lemmas, log_weights.dtype)
        exact = log_weights.double()
        self.log_total = float(exact.logsumexp(0))  # 0, unless the weights are not normalised
        self._warmup_updates = 0
        self.hidden_share = 0.0  # of the sentences in training: how many of them have b₀ as their background
        self.silent = int(is_content_word.logical_not().nonzero()[0])  # a source token that says nothing
        share_of_all = (exact - self.log_total).exp()
        kept = (~words & (share_of_all > 0)).nonzero().squeeze(1)
        word_mass = share_of_all[words].sum()
        for name, value in (
            ("is_content_word", is_content_word),
            ("rank_of", rank_of),
            ("word_mass", word_mass.to(log_weights.dtype)),
            ("kept_ranks", rank_of[kept]),
            ("kept_weights", share_of_all[kept].to(log_weights.dtype)),
        ):
            self.register_buffer(name, value, persistent=False)
        logit = torch.tensor(weight, dtype=torch.float64).logit().to(log_weights.dtype)
        if learned:
            self.weight_logit = nn.Parameter(logit)
        else:
            self.register_buffer("weight_logit", logit, persistent=False)

    def given(self, source: Tensor, leave_out: Tensor | None = None) -> Background:
        """b(C; x) of the sentences `source` (B, L), padded with the source's <pad> on any side.

        Ids beyond the dictionary, of strings that an encoder reads by their characters, are <unk> to it.
        In training, where there is `leave_out`, each of them has b₀ instead with probability `hidden_share`.
        """
        source = source.masked_fill(source >= len(self.is_content_word), SPECIALS.index(UNK))
        if leave_out is not None and self.hidden_share > 0:
            hidden = torch.rand(source.size(0), 1, device=source.device) < self.hidden_share
            source = source.masked_fill(hidden, self.silent)
        keys, weights, coverage = self.entries(source, leave_out)
        return LexicalMixture(self, self.rank_of, keys, weights, *self.log_mixture(coverage))

    def warm_up(self, updates: int) -> None:
        """Hide the translations from ever fewer sentences in so many updates of training."""
        self._warmup_updates = updates

    def set_num_updates(self, num_updates: int) -> None:
        """Before every update of training, also of one that was resumed: what the warm-up makes of `hidden_share`.

        fairseq calls it so, of every module that has it.
        """
        if self._warmup_updates:
            self.hidden_share = max(0.0, 1.0 - num_updates / self._warmup_updates)

    def entries(self, source: Tensor, leave_out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """What the sentences say: rising keys sentence · V + rank, and weights e (E,); and their shares r (B,)."""
        links, weights, _, coverage = self._links(source, leave_out)
        if self.forms is not None:
            links, weights, _ = self.forms.spread(*_sum_equal(links, weights), leave_out)
            links = links // len(self.class_of) * len(self.class_of) + self.rank_of[links % len(self.class_of)]
        sentence = torch.arange(source.size(0), device=source.device).unsqueeze(1)
        keys = torch.cat([links, (sentence * len(self.class_of) + self.kept_ranks).flatten()])
        weights = torch.cat([weights, (coverage.unsqueeze(1) * self.kept_weights).flatten()])
        return *_sum_equal(keys, weights), coverage

    def by_place(self, source: Tensor, leave_out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Which place says what of which word, as parts of e: keys sentence · V + word, places in the source, weights.

        Words that keep their mass are not among them. A pair of a word and a place may come several times: a place's
        lemmas may have a form in common.
        """
        keys, weights, token, _ = self._links(source, leave_out)
        if self.forms is None:
            size = len(self.class_of)
            keys = keys // size * size + self.ranked_members[keys % size]
        else:
            keys, weights, rows = self.forms.spread(keys, weights, leave_out)
            token = token[rows]
        return keys, token % source.size(1), weights

    def _links(self, source: Tensor, leave_out: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What each token of the sentences says of units, not yet summed.

        Returns:
            Keys sentence · V + unit, weights and tokens (sentence · L + place), one for each link (…,); the shares r of
            known words (B,).
        """
        dtype = self.rows.links.dtype
        length = self.is_content_word[source].sum(1).clamp_min(1).to(dtype)  # shape: (B,)
        keys, shares, token, some = self.rows.token_rows(source, leave_out)
        coverage = some.sum(1).to(dtype) / length
        return keys, self.word_mass * shares / length[keys // len(self.class_of)], token, coverage

    def log_mixture(self, coverage: Tensor) -> tuple[Tensor, Tensor]:
        """log(1 − λr) of sentences with the shares r of known words (B,), and log λ (a scalar); exact for any λ."""
        log_weight, log_rest = log_odds(self.weight_logit)
        remaining = torch.logaddexp(log_rest, log_weight + torch.log1p(-coverage.double()))
        return remaining.to(coverage.dtype), (log_weight + self.log_total).to(coverage.dtype)


def _sum_equal(keys: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Keys (E,) in any order, and their weights -> each key once, rising, and the sum of its weights."""
    keys, order = keys.sort(stable=True)
    return sum_runs(keys, weights[order])
