"""The interface of a background: a state machine over tokens, and the weights b(K, x) of the next token.

Sizes: V words, S signatures, N hypotheses, B batch, T time. All weights are natural logarithms. −inf forbids.

    module = prior.background()                    nn.Module: parameters and tables
    bound  = module.bind(source, text)             a plain object for one batch or one search

    states = bound.start(n)                        the states of n hypotheses: a tensor (n, …), or states.py
    states = bound.advance(states, tokens)         after the tokens (N,) were emitted
    view   = bound.view(states)                    what may come next in N states
    view   = bound.view_of(previous)               the same at all positions of a batch (B, T): N = B·T

    view.class_mass                                log B_K(σ) of all classes in N rows: ClassWeights (class_weights.py)
    view.locate(tokens)                            classes, and log b(K, x) − log B_K(σ(x)): (N,) each
    view.best_share, view.best(…)                  the best members of classes, for searches
    view.expand(class_log_probs)                   log p of all words, given log p of all classes

`bind` returns a `BoundBackground`. It depends on the source sentences of the batch, and in training on its text. No
module is made or copied for a batch. A view is made for one step or one batch, and remembers what it has computed.

Near a limit of length (`remaining`), words after which no end is in reach get the share −inf. Masses and weights do not
change, so the scores of all other words do not change.

A new background is a subclass of `Background` with `start`, `advance` and `log_weights(states) -> (N, V)` or (1, V). If
it depends on nothing else, it is its own bound object. `View` computes everything from `log_weights`, slowly: it is the
definition. A faster background returns another view, with the same values, which fairseq_llrnn/testing checks.
Backgrounds form an algebra (algebra.py, mixture.py). A background that lists the words whose weight differs from a
static one is an `ExplicitBackground` (explicit_background.py). If words have classes of their own in a context, the
background is wrapped in context classes (output/context_classes.py).

The simplest background, `StaticBackground`, does not depend on the context: the paper's b(x), with uniform weights, a
unigram, or weights from a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY as NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.class_weights import ClassWeights as ClassWeights
from fairseq_llrnn.backgrounds.class_weights import (
    ExplicitWeights,
    broadcast_groups,
    class_log_sums,
    log_difference,
    row_numbers,
)
from fairseq_llrnn.backgrounds.exact_buffers import ExactBuffers
from fairseq_llrnn.backgrounds.states import States, concatenate, repeat, select


class View:
    """What may come next in N states.

    N rows are hypotheses of a search or positions of a batch. Methods with `tokens` or `classes` (M,) and `rows` (M,)
    answer for pairs. Without `rows`, pair n is of row n. Results about all words have K columns: V words, and the
    strings of the sentence.
    """

    def __init__(
        self, bound: BoundBackground, states: States, hidden: Tensor | None = None, remaining: int | None = None
    ) -> None:
        """Arguments as of `BoundBackground.view`."""
        self.bound, self.states, self.hidden = bound, states, hidden
        self.remaining = None if remaining is None or remaining > bound.most_steps else remaining
        self.class_of, self.num_classes = bound.class_of, bound.num_classes
        # not len, which would turn torch.export's symbol into a number
        self.num_rows = states.size(0) if isinstance(states, Tensor) else len(states)

    def select(self, rows: Tensor) -> View:
        """Return the view of some rows, reordered or repeated. rows: (M,) int64."""
        hidden = None if self.hidden is None else self.hidden.index_select(0, rows)
        return self.bound.view(select(self.states, rows), hidden, self.remaining)

    def _rows(self, pairs: Tensor, rows: Tensor | None) -> Tensor:
        """Return the rows of pairs (M,)."""
        return torch.arange(len(pairs), device=pairs.device) if rows is None else rows

    # ---- weights and masses -----------------------------------------------------------------------------------------

    @cached_property
    def log_weights(self) -> Tensor:
        """log b(K, x) of every column: (N, K), or (1, K) if it is the same in all rows."""
        return self.bound.log_weights(self.states)

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return log b(K, x) of pairs: (M,)."""
        weights, rows = self.log_weights, self._rows(tokens, rows)
        return weights[rows if len(weights) > 1 else torch.zeros_like(rows), tokens]

    @property
    def listed(self) -> ExplicitWeights | None:
        """The weights as a factor of `bound.root` and exceptions, or None if there is no root."""
        return None

    @cached_property
    def class_mass(self) -> ClassWeights:
        """log B_K(σ) of all classes in N rows."""
        return ClassWeights(class_log_sums(self.log_weights, self.class_of, self.num_classes), self.num_rows)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return log B_K(σ) of pairs: (M,)."""
        mass, rows = self.class_mass, self._rows(classes, rows)
        shared = mass.shared if mass.entries is None else mass.dense()
        return shared[rows // max(1, self.num_rows // len(shared)), classes]

    def _mass_like(self, values: Tensor) -> Tensor:
        """Return the log masses in as many rows as values (N, …) or (1, …)."""
        mass = self.class_mass
        return mass.shared if len(values) == 1 and mass.entries is None else mass.dense()

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        """Return the log mass of each word's class after words are removed from their classes.

        Args:
            words: (N, J), distinct in a row. taken: (N, J) bool, the words to remove; equal for all hypotheses of a
                sentence.

        Returns:
            log Σ_{x ∈ σ(words[n, j]), x not taken in row n} b(K, x): (N, J), with −inf if nothing is left.
        """
        weights = self.log_weights.expand(len(words), -1)
        out = torch.zeros_like(weights).scatter_add(1, words, taken.to(weights.dtype))  # GPUs cannot scatter bool
        mass = class_log_sums(weights.masked_fill(out > 0, NEGATIVE_INFINITY), self.class_of, self.num_classes)
        return mass.gather(1, self.class_of[words])

    # ---- classes and shares -----------------------------------------------------------------------------------------

    def classes(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return the classes of pairs: (M,)."""
        return self.class_of[tokens]

    def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the classes of pairs, and log b(K, x) − log B_K(σ(x)): (M,) each."""
        rows, classes = self._rows(tokens, rows), self.class_of[tokens]
        shares = log_difference(self.weights_at(tokens, rows), self.mass_at(classes, rows))
        if self.remaining is not None:
            shares = shares.masked_fill(self.out_of_reach(tokens, rows), NEGATIVE_INFINITY)
        return classes, shares

    @cached_property
    def log_shares(self) -> Tensor:
        """log b(K, x) − log B_K(σ(x)) of every column, −inf for a word without weight: (N, K) or (1, K)."""
        weights = self.log_weights
        shares = log_difference(weights, self._mass_like(weights)[:, self.class_of])
        if self.remaining is None:
            return shares
        shares = shares.expand(self.num_rows, -1)
        tokens = torch.arange(shares.size(1), device=shares.device).expand_as(shares)
        lost = self.out_of_reach(tokens.flatten(), row_numbers(tokens).flatten())
        return shares.masked_fill(lost.view_as(shares), NEGATIVE_INFINITY)

    def share_sums(self) -> tuple[Tensor, Tensor]:
        """Return the number of members of every class with weight, and the sum of their log shares: (N, S), (1, S), or
        (G, S) with row g for the N/G equal states from g·N/G on.
        """
        if self.listed is None:
            weights = self.log_weights
            has_weight, none = ~weights.isneginf(), weights.new_zeros(len(weights), self.num_classes)
            counts = none.index_add(1, self.class_of, has_weight.to(weights.dtype))
            total = none.index_add(1, self.class_of, weights.masked_fill(~has_weight, 0.0))
        else:
            root = self.bound.root
            assert root is not None
            counts, total = self.listed.class_sums(root.word_log_weight, self.class_of, self.num_classes)
        mass = self._mass_like(total)
        return counts, total - counts * mass.masked_fill(mass.isneginf(), 0.0)

    def out_of_reach(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """Return whether no end is within the limit after pairs: (M,) bool."""
        assert self.remaining is not None
        after = self.bound.steps_to_end(self.bound.advance(select(self.states, rows), tokens))
        return (tokens != END) & (after >= self.remaining)

    # ---- the best words (search) ------------------------------------------------------------------------------------

    @cached_property
    def best_share(self) -> Tensor:
        """The log share of the best member of every class, −inf for a class without mass.

        (N, S), or (G, S), with row g for the N/G equal states from g·N/G on.
        """
        return self.best_of_all_words()

    def best_of_all_words(self) -> Tensor:
        """Return `best_share`, by definition."""
        shares = self.log_shares
        best = shares.new_full((len(shares), self.num_classes), NEGATIVE_INFINITY)
        return best.scatter_reduce(1, self.class_of.expand_as(shares), shares, reduce="amax")

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the k members with the largest shares of each class (M,): log shares and tokens, (M, k) each.

        Classes with fewer than k members are padded with −inf (and token 0).
        """
        shares, rows = self.log_shares, self._rows(classes, rows)
        of_rows = shares[rows] if len(shares) > 1 else shares
        masked = of_rows.masked_fill(self.class_of != classes.unsqueeze(1), NEGATIVE_INFINITY)  # shape: (M, V)
        missing = max(0, k - masked.size(1))
        values, tokens = nn.functional.pad(masked, (0, missing), value=NEGATIVE_INFINITY).topk(k, dim=1)
        return values, tokens.masked_fill(values.isneginf(), 0)

    def only_member(self, classes: Tensor) -> Tensor:
        """Return the only member of each class: (N, C) -> (N, C), with −1 for a class with more or no members."""
        return self.bound.only_members[classes]

    # ---- all words, and strings of the sentence ---------------------------------------------------------------------

    @property
    def columns(self) -> Tensor:
        """The token of each column: (1, V), or (N, K)."""
        return torch.arange(len(self.class_of), device=self.class_of.device).unsqueeze(0)

    @property
    def column_classes(self) -> Tensor:
        """The class of each column: (1, V), or (N, K)."""
        return self.class_of.unsqueeze(0)

    def column_of(self, tokens: Tensor) -> Tensor:
        """Return the columns of the tokens (N, T) of each row."""
        return tokens

    def expand(self, class_log_probs: Tensor) -> Tensor:
        """Return log p of every column, given log p(σ | K): (N, S) -> (N, K), with −inf for forbidden words."""
        classes = self.column_classes
        of_columns = class_log_probs[:, classes[0]] if len(classes) == 1 else class_log_probs.gather(1, classes)
        return of_columns + self.log_shares.to(of_columns.dtype)

    @property
    def num_columns(self) -> int:
        """K"""
        return len(self.class_of)


class RepeatedView(View):
    """A view of B states, each of them `times` times: N = B · times rows."""

    def __init__(self, view: View, times: int) -> None:
        super().__init__(view.bound, repeat(view.states, times))
        self.view, self.times = view, times

    def _wide(self, values: Tensor) -> Tensor:
        return broadcast_groups(values, self.num_rows) if len(values) > 1 else values

    @cached_property
    def log_weights(self) -> Tensor:
        return self._wide(self.view.log_weights)

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.view.weights_at(tokens, self._rows(tokens, rows) // self.times)

    @cached_property
    def class_mass(self) -> ClassWeights:
        return self.view.class_mass.repeated(self.times)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.view.mass_at(classes, self._rows(classes, rows) // self.times)

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        return self.bound.view(self.states).mass_without(words, taken)

    def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.view.locate(tokens, self._rows(tokens, rows) // self.times)

    @cached_property
    def log_shares(self) -> Tensor:
        return self._wide(self.view.log_shares)

    def share_sums(self) -> tuple[Tensor, Tensor]:
        return self.view.share_sums()

    @property
    def listed(self) -> ExplicitWeights | None:
        return self.bound.view(self.states).listed

    @cached_property
    def best_share(self) -> Tensor:
        return self.view.best_share

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.view.best(classes, k, self._rows(classes, rows) // self.times)


class BoundBackground:
    """A state machine over tokens, in one batch or one search (module docstring)."""

    class_of: Tensor  # (V,) int64
    num_classes: int  # S
    is_context_independent = False  # whether all states of a sentence have the same weights
    is_exhaustive = False  # whether `View.listed` lists every word with weight
    most_steps: int = 0  # the largest of `steps_to_end`, 0 if all are 1: a larger limit of length changes nothing
    has_dead_ends: bool = False  # whether a word may lead to a state without an end, also a word without weight here

    def __init__(self, class_of: Tensor, num_classes: int) -> None:
        self.class_of, self.num_classes = class_of, num_classes

    @property
    def root(self) -> StaticBackground | None:
        """The static background whose exceptions views list (`View.listed`), or None."""
        return None

    # ---- methods of a subclass --------------------------------------------------------------------------------------

    def start(self, n: int) -> States:
        """Return the states of `n` empty hypotheses.

        If the background was bound to source sentences, n is their number, and row i is of sentence i.
        """
        raise NotImplementedError(f"{type(self).__name__}: call bind() first, or implement start")

    def advance(self, states: States, tokens: Tensor) -> States:
        """Return new states, after every hypothesis has emitted its token (N,). The old ones do not change."""
        raise NotImplementedError

    def log_weights(self, states: States) -> Tensor:
        """Return log b(K, x) of every word: (N, V), or (1, V) if it is the same for all hypotheses.

        Tokens that must never be generated, such as <s> and <pad>, have −inf. A background with a faster `view` need
        not implement it.
        """
        raise NotImplementedError

    # ---- states -----------------------------------------------------------------------------------------------------

    def flat_states(self, previous: Tensor) -> States:
        """Return the states before each position of a batch with inputs `previous` (B, T), position b·T + t.

        previous[:, 0] is the start symbol, which the state machine does not read.
        """
        states = [self.start(previous.size(0))]
        if self.is_context_independent:
            return repeat(states[0], previous.size(1))
        for tokens in previous[:, 1:].unbind(1):
            states.append(self.advance(states[-1], tokens))
        numbers = torch.arange(previous.numel(), device=previous.device).view(len(states), -1)
        return select(concatenate(states), numbers.T.flatten())

    def steps_to_end(self, states: States) -> Tensor:
        """Return the least number of tokens, `</s>` included, that complete the string: (N,) int64, huge if none do.

        A subclass that overrides it also sets `most_steps`.
        """
        return self.class_of.new_ones(len(states))

    def possible_words(self) -> Tensor:
        """Return whether each word may have weight in some state: (V,) bool, or True if unknown."""
        root = self.root
        return torch.ones_like(self.class_of, dtype=torch.bool) if root is None else root.word_log_weight.isfinite()

    def in_vocabulary(self, tokens: Tensor, states: States) -> Tensor:
        """Return whether each token (N, …) of hypotheses has a class: ids ≥ V are strings."""
        return tokens < len(self.class_of)

    def to_input_ids(self, tokens: Tensor, states: States) -> Tensor:
        """Return valid inputs of a network with V rows for the tokens (N, T) of hypotheses."""
        return tokens

    # ---- views ------------------------------------------------------------------------------------------------------

    def view(self, states: States, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        """Return the weights of the next token in N states.

        Args:
            hidden: the network's hidden states, (N, H), for mixtures whose weights the network chooses.
            remaining: the largest number of tokens that may follow, the next one and `</s>` included. None: no limit.
        """
        return View(self, states, hidden, remaining)

    def view_of(self, previous: Tensor, hidden: Tensor | None = None) -> View:
        """Return the weights at all positions of a batch with inputs `previous` (B, T): N = B·T rows, b·T + t."""
        if self.is_context_independent:
            return RepeatedView(self.view(self.start(len(previous))), previous.size(1))
        return self.view(self.flat_states(previous), hidden)

    @cached_property
    def only_members(self) -> Tensor:
        """The only member of each class, −1 for a class with more or no members: (S,)."""
        sizes = torch.bincount(self.class_of, minlength=self.num_classes)
        last = torch.zeros_like(sizes).scatter(0, self.class_of, torch.arange(len(self.class_of), device=sizes.device))
        return last.masked_fill(sizes != 1, -1)


class Background(BoundBackground, ExactBuffers):
    """Parameters and tables of a background. If it needs no `bind`, it is its own bound object."""

    of_buffers: tuple[str, ...] = ("only_members",)  # cached properties on the device of the buffers

    def __init__(self, class_of: Tensor, num_classes: int) -> None:
        ExactBuffers.__init__(self)
        self.keep(class_of=class_of)
        self.num_classes = num_classes

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        """Return the background of a batch, or of the sentences of a search.

        Args:
            source: (B, L) source tokens, padded with the source's pad. Ids beyond the source dictionary are strings.
                None: without a source.
            text: in training only, the target text of the batch, (B, T), padded: the start symbol, then the words,
                <unk> for words outside the dictionary. Its own part of the background's counts is left out
                (leave-one-out, cross-fitting). Otherwise training would see better weights than any new text.
                Sentences end with `</s>`, the last one of a row at the end of the row. If rows have one sentence, the
                `previous` of `view_of` may be shorter.
        """
        return self

    @property
    def needs_length_limit(self) -> bool:
        """Whether a string cannot end in some states, so that a search needs the remaining length."""
        return self.bind().most_steps >= 2

    def gates(self, hidden_size: int) -> None:
        """Make the layers that choose weights, given hidden states (H), once, before a view is made.

        The default calls the method of all parts.
        """
        for part in self.children():
            if isinstance(part, Background):
                part.gates(hidden_size)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        for name in self.of_buffers:
            self.__dict__.pop(name, None)
        return super()._apply(fn, recurse)


class StaticBackground(Background):
    """b(K, x) = b(x). Masses and shares are computed once, in float64, and keep this precision."""

    word_log_weight: Tensor  # (V,)
    word_log_share: Tensor  # (V,)
    class_log_mass: Tensor  # (S,)
    ranked_members: Tensor  # (V,) words by class, the largest share first inside each
    class_starts: Tensor  # (S + 1,) where each class begins in ranked_members
    class_support: Tensor  # (S,) number of members with weight
    best_of_class: Tensor  # (S,) the largest share
    is_context_independent = True

    def __init__(self, class_of: Tensor, num_classes: int, log_weights: Tensor) -> None:
        """class_of: (V,) int64. log_weights: (V,) natural logarithms. −inf forbids a word."""
        super().__init__(class_of, num_classes)
        log_weights = log_weights.double()
        exact = log_weights.unsqueeze(0)
        mass = class_log_sums(exact, class_of, num_classes)
        share = (exact - mass[:, class_of]).masked_fill(exact == NEGATIVE_INFINITY, NEGATIVE_INFINITY).squeeze(0)
        by_share = torch.argsort(share, descending=True, stable=True)
        by_class = by_share[torch.argsort(class_of[by_share], stable=True)]
        best = share.new_full((num_classes,), NEGATIVE_INFINITY)
        self.keep(
            word_log_weight=log_weights,
            word_log_share=share,
            class_log_mass=mass.squeeze(0),
            ranked_members=by_class,
            class_starts=nn.functional.pad(torch.bincount(class_of, minlength=num_classes).cumsum(0), (1, 0)),
            class_support=torch.bincount(class_of[~share.isneginf()], minlength=num_classes),
            best_of_class=best.scatter_reduce(0, class_of, share, "amax"),
        )

    @property
    def root(self) -> StaticBackground:
        return self

    def start(self, n: int) -> Tensor:
        return self.class_of.new_zeros((n, 0))

    def advance(self, states: States, tokens: Tensor) -> Tensor:
        return states

    def view(self, states: States, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        return StaticView(self, states)

    def view_of(self, previous: Tensor, hidden: Tensor | None = None) -> View:
        return StaticView(self, self.start(previous.numel()))

    def ranked_weights(self, places: Tensor) -> Tensor:
        """Return the log weights of the words at places of ranked_members, of any shape."""
        return self.word_log_weight[self.ranked_members[places]]


class StaticView(View):
    """The same weights in all rows."""

    bound: StaticBackground

    @property
    def log_weights(self) -> Tensor:
        return self.bound.word_log_weight.unsqueeze(0)

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.bound.word_log_weight[tokens]

    @property
    def listed(self) -> ExplicitWeights | None:
        nothing = self.bound.word_log_weight[:0]
        constant = self.bound.word_log_weight.new_zeros(self.num_rows)
        return ExplicitWeights(len(self.class_of), nothing.long(), nothing, constant, None)

    @cached_property
    def class_mass(self) -> ClassWeights:
        return ClassWeights(self.bound.class_log_mass.unsqueeze(0), self.num_rows)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.bound.class_log_mass[classes]

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        share = self.bound.word_log_share[words].masked_fill(~taken, NEGATIVE_INFINITY)
        classes = self.class_of[words]
        # shape: (N, J, J), the words taken out of each word's class
        shares_in_class = share.unsqueeze(1).expand(-1, words.size(1), -1)
        shares_in_class = shares_in_class.masked_fill(classes.unsqueeze(2) != classes.unsqueeze(1), NEGATIVE_INFINITY)
        # log(1 − Σ exp share): the log share is precise even if little is left
        lost = shares_in_class.logsumexp(2).clamp_max(-torch.finfo(share.dtype).eps)
        left = self.bound.class_support[classes] - (~shares_in_class.isneginf()).sum(2)
        rest = self.bound.class_log_mass[classes] + (-torch.expm1(lost)).log()
        return rest.masked_fill(left <= 0, NEGATIVE_INFINITY)

    def locate(self, tokens: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.class_of[tokens], self.bound.word_log_share[tokens]

    @property
    def log_shares(self) -> Tensor:
        return self.bound.word_log_share.unsqueeze(0)

    @property
    def best_share(self) -> Tensor:
        return self.bound.best_of_class.unsqueeze(0)

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        bound = self.bound
        # shape: (M, k), positions in ranked_members; those past the end of a class are masked
        rank = bound.class_starts[classes].unsqueeze(-1) + torch.arange(k, device=classes.device)
        past = rank >= bound.class_starts[classes + 1].unsqueeze(-1)
        tokens = bound.ranked_members[rank.clamp(max=bound.ranked_members.numel() - 1)]
        return bound.word_log_share[tokens].masked_fill(past, NEGATIVE_INFINITY), tokens.masked_fill(past, 0)
