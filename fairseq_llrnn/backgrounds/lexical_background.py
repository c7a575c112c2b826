"""The background of a translation: translations of the words of the source sentence, mixed with b₀.

Sizes: B sentences of a batch, L source length, T time, V target words, U source words, E sparse entries of a batch.
For a source sentence C with n words s (all its tokens but <s>, <pad> and </s>), and 0 ≤ λ < 1,

    b(C; x)  =  (1−λ) b₀(x)  +  λ · 1/n Σ_s t'(x | s)                                               (b₀ if n = 0)

t' is the table t(x | s) with three additions, so that b is normalised if b₀ is, for every sentence:

* </s> and <unk> keep exactly the mass of b₀, because source words do not predict the end of a sentence. With m the
  mass of all other words in b₀, t'(x | s) = m t(x | s) for a word x and t'(x | s) = b₀(x) for </s> and <unk>.
* A source word outside the table (in particular <unk>) counts as b₀: t'(x | s) = b₀(x).
* A word that b₀ forbids is in no table, and stays forbidden.

Training is leave-one-out: `bind(source, text)` removes the links of the current sentence from the links that t(x | s)
was estimated from (source_rows.py). Otherwise training would predict a word that occurs once with certainty, and the
network would learn to rely on it.

A rare source word may use the translations of its lemma (source_rows.py). The table may be one of target lemmas:
t'(x | s) = m Σ_ℓ t(ℓ | s) share(x | ℓ), which reaches forms outside the bitext (source_rows.py). A lemma is the id of
one of its forms.

At the beginning of training, t may also be hidden from a share of the sentences (`hidden_share`), whose background is
then b₀. Otherwise the network need not learn to attend to the source, because t has most of the information.

With r the share of words of the sentence that the table knows, this is b₀(x) (1 − λr) everywhere plus λ e(x) at few
words: those in the table, </s> and <unk> (`LexicalMixture`). With S signatures and E entries e, B_C(σ) needs one sum
over V words for all sentences, and a sparse one for each of them. The entries of a batch are sorted by sentence · V +
rank. Words are ranked by class and, inside it, by b₀. So one sorted row finds the entry of a word and the entries of a
class.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.alignment.source_lemmas import SourceLemmas
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.background import BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import (
    NEGATIVE_INFINITY,
    ClassWeights,
    ExplicitWeights,
    compress_runs,
    expanded,
    log_odds,
)
from fairseq_llrnn.backgrounds.source_rows import FormShares, SourceRows
from fairseq_llrnn.features.dictionary import SPECIALS, UNK


class LexicalBackground(StaticBackground):
    """b(C; x). Without a source it is b₀; `bind(source)` returns the background of a batch of source sentences."""

    is_content_word: Tensor  # (U,) bool
    rank_of: Tensor  # (V,) the place of a word in ranked_members
    word_mass: Tensor  # scalar, m
    kept_ranks: Tensor  # (≤ 2,) ranks of the words that keep their mass
    kept_weights: Tensor  # (≤ 2,) their b₀
    weight_logit: Tensor  # scalar, log λ/(1−λ); a parameter if λ is learned

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
            words: (V,) bool, the target words that the table may contain; all others keep their mass.
            is_content_word: (U,) bool, the source tokens that count in the mean.
            weight: λ, or its initial value if it is `learned`.
            forms: the shares of forms of target lemmas. None: the table is one of words.
            source_lemmas: the lemmas of rare source words.
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
        self.hidden_share = 0.0  # share of the sentences in training with b₀ as their background
        self.silent = int(is_content_word.logical_not().nonzero()[0])  # a source token without translations
        share_of_all = (exact - self.log_total).exp()
        kept = (~words & (share_of_all > 0)).nonzero().squeeze(1)
        word_mass = share_of_all[words].sum()
        self.keep(
            is_content_word=is_content_word,
            rank_of=rank_of,
            word_mass=word_mass.to(log_weights.dtype),
            kept_ranks=rank_of[kept],
            kept_weights=share_of_all[kept].to(log_weights.dtype),
        )
        self.learn_share("weight_logit", weight, learned, log_weights.dtype)

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        """Return b(C; x) of the sentences `source` (B, L), padded with the source's <pad> on any side; b₀ without a
        source.

        Ids beyond the dictionary count as <unk>. In training (with `text`), each sentence has b₀ instead with
        probability `hidden_share`.
        """
        if source is None:
            return self
        source = source.masked_fill(source >= len(self.is_content_word), SPECIALS.index(UNK))
        if text is not None and self.hidden_share > 0:
            hidden = torch.rand(source.size(0), 1, device=source.device) < self.hidden_share
            source = source.masked_fill(hidden, self.silent)
        keys, weights, coverage = self.entries(source, text)
        return LexicalMixture(self, self.rank_of, keys, weights, *self.log_mixture(coverage))

    def warm_up(self, updates: int) -> None:
        """Hide the translations from a share of the sentences that falls to 0 over `updates` updates of training."""
        self._warmup_updates = updates

    def set_num_updates(self, num_updates: int) -> None:
        """Set `hidden_share` of the warm-up. fairseq calls this method of every module before each update, also
        after resuming.
        """
        if self._warmup_updates:
            self.hidden_share = max(0.0, 1.0 - num_updates / self._warmup_updates)

    def entries(self, source: Tensor, leave_out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return strictly ascending keys sentence · V + rank, weights e (E,), and the shares r of known words (B,)."""
        links, weights, _, coverage = self._links(source, leave_out)
        if self.forms is not None:
            links, weights, _ = self.forms.spread(*_sum_equal(links, weights), leave_out)
            links = links // len(self.class_of) * len(self.class_of) + self.rank_of[links % len(self.class_of)]
        sentence = torch.arange(source.size(0), device=source.device).unsqueeze(1)
        keys = torch.cat([links, (sentence * len(self.class_of) + self.kept_ranks).flatten()])
        weights = torch.cat([weights, (coverage.unsqueeze(1) * self.kept_weights).flatten()])
        return *_sum_equal(keys, weights), coverage

    def by_source_place(self, source: Tensor, leave_out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the parts of e by source position: keys sentence · V + word, source positions, weights.

        Words that keep their mass are excluded. A pair of a word and a position may occur several times, because lemmas
        of a position may share a form.
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
        """Return the translations of each token of the sentences, not yet summed.

        Returns:
            Keys sentence · V + unit, weights and tokens (sentence · L + place), one for each link (…,); the shares r of
            known words (B,).
        """
        dtype = self.rows.links.dtype
        length = self.is_content_word[source].sum(1).clamp_min(1).to(dtype)  # shape: (B,)
        keys, shares, token, has_translations = self.rows.token_rows(source, leave_out)
        coverage = has_translations.sum(1).to(dtype) / length
        return keys, self.word_mass * shares / length[keys // len(self.class_of)], token, coverage

    def log_mixture(self, coverage: Tensor) -> tuple[Tensor, Tensor]:
        """Return log(1 − λr) of sentences with the shares r of known words (B,), and log λ (a scalar). Exact
        for any λ.
        """
        log_weight, log_rest = log_odds(self.weight_logit)
        remaining = torch.logaddexp(log_rest, log_weight + torch.log1p(-coverage.double()))
        return remaining.to(coverage.dtype), (log_weight + self.log_total).to(coverage.dtype)


def _sum_equal(keys: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Sum the weights of equal keys (E,), in any order: distinct ascending keys and their sums."""
    keys, order = keys.sort(stable=True)
    return sum_runs(keys, weights[order])


class LexicalMixture(BoundBackground):
    """b(C; x) of a batch of sentences. The state of a hypothesis is the index of its sentence, (N, 1), and never
    changes.

    A dummy entry follows the E entries. Lookups of missing keys point to it.
    """

    is_context_independent = True

    def __init__(
        self,
        root: StaticBackground,
        rank_of: Tensor,
        keys: Tensor,
        weights: Tensor,
        log_rest: Tensor,
        log_weight: Tensor,
    ) -> None:
        """Compute the masses of all sentences.

        Args:
            rank_of: (V,), the place of a word in `root.ranked_members`.
            keys, weights: (E,), of `LexicalBackground.entries`.
            log_rest: (B,), log(1 − λr), the factor of b₀. log_weight: a scalar, log λ, the factor of the weights.
        """
        super().__init__(root.class_of, root.num_classes)
        self.static, self.rank_of = root, rank_of
        self.num_sentences = len(log_rest)
        self.log_rest, self.log_weight, self.entry_weights = log_rest, log_weight, weights
        sentence = keys // len(self.class_of)
        words = root.ranked_members[keys % len(self.class_of)]
        self.entry_classes = sentence * self.num_classes + self.class_of[words]  # shape: (E,), into (B · S,)
        # shape: (B · S,): the masses of b₀, then with the additions of the sentence
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
        """Return the states of one hypothesis per sentence. `n` is the number of sentences."""
        if n != self.num_sentences:
            raise ValueError(f"expected one hypothesis for each of {self.num_sentences} sentences, found {n}")
        return torch.arange(n, device=self.class_of.device).unsqueeze(1)

    def advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        return states

    @property
    def root(self) -> StaticBackground:
        return self.static

    @property
    def only_members(self) -> Tensor:
        return self.root.only_members

    def view(self, states: Tensor, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        return LexicalView(self, states)

    # ---- entries ----------------------------------------------------------------------------------------------------

    def place(self, sentence: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the place of each token among the entries, and whether it has an entry."""
        key = sentence * len(self.class_of) + self.rank_of[tokens]
        place = torch.searchsorted(self.keys, key)
        return place, self.keys[place] == key

    def base_share(self, sentence: Tensor, tokens: Tensor) -> Tensor:
        """Return the log shares of words without an entry."""
        weight = self.root.word_log_weight[tokens]
        mass = self.class_log_mass[sentence, self.class_of[tokens]]
        return (weight + self.log_rest[sentence] - mass).masked_fill(weight.isneginf(), NEGATIVE_INFINITY)

    @cached_property
    def by_word(self) -> tuple[Tensor, Tensor, Tensor]:
        """The entries by sentence and word: ascending keys sentence · V + word, entries, (E,) each. Offsets (B
        + 1,).
        """
        words = len(self.class_of)
        keys, order = (self.keys[:-1] // words * words + self.entry_words[:-1]).sort()
        sentences = torch.arange(self.num_sentences + 1, device=keys.device)
        return keys, order, torch.searchsorted(keys, sentences * words)

    @cached_property
    def best_of_sentences(self) -> Tensor:
        """The best log share of every class, (B, S): its best word is the first one by b₀, or a translation."""
        every_class = torch.arange(self.num_classes, device=self.class_of.device)
        first, tokens = self.root.view(self.root.start(1)).best(every_class, 1)
        sentence = torch.arange(self.num_sentences, device=self.class_of.device).unsqueeze(1)
        best = self.base_share(sentence, tokens.squeeze(1))
        best = best.masked_fill(first.squeeze(1).isneginf(), NEGATIVE_INFINITY).flatten()
        best = best.scatter_reduce(0, self.entry_classes, self.entry_log_share[:-1], reduce="amax")
        return best.view(self.num_sentences, self.num_classes)

    @cached_property
    def shares_of_sentences(self) -> Tensor:
        """(B, V)"""
        weights = self.view(self.start(self.num_sentences)).log_weights
        return (weights - self.class_log_mass[:, self.class_of]).masked_fill(weights.isneginf(), NEGATIVE_INFINITY)


class LexicalView(View):
    """b(C; x) for N hypotheses or positions."""

    bound: LexicalMixture

    def __init__(self, bound: LexicalMixture, states: Tensor) -> None:
        super().__init__(bound, states)
        self.root, self.sentence = bound.root, states.squeeze(1)  # shape: (N,)

    def _sentences(self, rows: Tensor | None) -> Tensor:
        """Return the sentences of rows: (M,)."""
        return self.sentence if rows is None else self.sentence[rows]

    # ---- weights and masses -----------------------------------------------------------------------------------------

    @cached_property
    def log_weights(self) -> Tensor:
        return self.listed.dense(self.root.word_log_weight)

    @cached_property
    def listed(self) -> ExplicitWeights:
        keys, order, offsets = self.bound.by_word
        sentence, words = self.sentence, len(self.class_of)
        rows, places = expanded(offsets[sentence], offsets[sentence + 1] - offsets[sentence])
        return ExplicitWeights(
            num_words=words,
            keys=rows * words + keys[places] % words,
            log_weights=self.bound.entry_log_weight[order[places]],
            constant=self.bound.log_rest[sentence],
            rooted=None,
        )

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        bound, sentence = self.bound, self._sentences(rows)
        place, has_entry = bound.place(sentence, tokens)
        base = self.root.word_log_weight[tokens] + bound.log_rest[sentence]
        return torch.where(has_entry, functional.pad(bound.entry_log_weight, (0, 1))[place], base)

    @cached_property
    def class_mass(self) -> ClassWeights:
        return ClassWeights(self.bound.class_log_mass.index_select(0, compress_runs(self.sentence)), self.num_rows)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.bound.class_log_mass[self._sentences(rows), classes]

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        bound, sentence = self.bound, self.states.expand_as(words)
        base = self.root.view(self.states).mass_without(words, taken) + bound.log_rest[sentence]
        place, has_entry = bound.place(sentence, words)
        hits = torch.bincount(place[has_entry & taken], minlength=len(bound.keys))
        hypotheses = torch.bincount(self.sentence, minlength=bound.num_sentences + 1)
        if bool(((hits > 0) & (hits != hypotheses[bound.keys // len(self.class_of)])).any()):
            return super().mass_without(words, taken)  # hypotheses of one sentence disagree
        out = hits > 0
        left = bound.entry_weights.masked_fill(out[:-1], 0.0)
        sums = left.new_zeros(bound.num_sentences * self.num_classes).index_add(0, bound.entry_classes, left)
        remaining = sums[sentence * self.num_classes + self.class_of[words]]
        nothing = base.isneginf() & (remaining == 0)  # logaddexp has no gradient here, and λ's would be NaN
        return torch.logaddexp(base.masked_fill(nothing, 0.0), remaining.log() + bound.log_weight).masked_fill(
            nothing, NEGATIVE_INFINITY
        )

    # ---- shares, and the best words (search) ------------------------------------------------------------------------

    def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        bound, sentence = self.bound, self._sentences(rows)
        place, has_entry = bound.place(sentence, tokens)
        shares = torch.where(has_entry, bound.entry_log_share[place], bound.base_share(sentence, tokens))
        return self.class_of[tokens], shares

    @cached_property
    def log_shares(self) -> Tensor:
        return self.bound.shares_of_sentences[self.sentence]

    @cached_property
    def best_share(self) -> Tensor:
        return self.bound.best_of_sentences.index_select(0, compress_runs(self.sentence))

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        # entries only add to b₀: the best words are among the k best by b₀ and the entries of the class
        bound, root, sentence = self.bound, self.root, self._sentences(rows).unsqueeze(1)  # shape: (M, 1)
        first, tokens = root.view(self.states).best(classes, k)  # shape: (M, k)
        shares = bound.base_share(sentence, tokens).masked_fill(first.isneginf(), NEGATIVE_INFINITY)
        shares = shares.masked_fill(bound.place(sentence, tokens)[1], NEGATIVE_INFINITY)
        key = sentence.squeeze(1) * len(self.class_of) + root.class_starts[classes]
        begin = torch.searchsorted(bound.keys, key).unsqueeze(1)  # shape: (M, 1)
        size = root.class_starts[classes + 1] - root.class_starts[classes]
        end = torch.searchsorted(bound.keys, key + size).unsqueeze(1)
        step = torch.arange(int((end - begin).max()), device=classes.device)
        places = torch.minimum(begin + step, end)  # shape: (M, ≤ E), masked past the end
        listed = bound.entry_log_share[places].masked_fill(begin + step >= end, NEGATIVE_INFINITY)
        values, best = torch.cat([shares, listed], 1).topk(k, 1)
        chosen = torch.cat([tokens, bound.entry_words[places]], 1).gather(1, best)
        return values, chosen.masked_fill(values.isneginf(), 0)


def sum_runs(keys: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Sum the weights of equal ascending keys (E,): distinct keys and their sums."""
    distinct, index = torch.unique_consecutive(keys, return_inverse=True)
    return distinct, weights.new_zeros(len(distinct)).index_add(0, index, weights)
