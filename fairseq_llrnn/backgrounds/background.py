"""The interface of a background: a state machine over tokens that gives every next token a weight b(K, x).

Sizes: V words, S signatures, N hypotheses, B batch, T time. All weights are natural logarithms. −inf forbids.

    module = prior.background()                    nn.Module: parameters and tables
    bound  = module.bind(source, text)             a plain object for one batch or one search

    state = bound.start(n)                         the states of n hypotheses: a tensor (n, …), or states.py
    state = bound.advance(state, tokens)           after the tokens (N,) were emitted
    bound.log_mass(state)          (N, S) or (1, S)    log Σ_{x∈σ} b(K, x)
    bound.log_share(state, tokens) (N,)                log b(K, x) − log B_K(σ(x))
    states, weights = bound.teacher_forced(previous)   all positions of a batch; ClassWeights (class_weights.py)

`bind` returns a `BoundBackground`. It depends on the source sentences of the batch, and in training on its text. Its
methods `with_hidden`, `select_rows` and `with_max_length` return other bound objects. No module is made or copied for a
batch. The caches of a bound object are freed with it.

If words have their own classes in a context (output/context_classes.py), there are more classes than signatures. Then
the class of a token depends on the context: use `classes(state, tokens)` instead of `class_of`.

A new background is a subclass of `Background` with `start`, `advance` and `log_weights(state) -> (N, V)` or (1, V). If
it depends on nothing else, it is its own bound object. All other methods have slow defaults. A faster override must
return the same values, which fairseq_llrnn/testing.py checks. Backgrounds form an algebra (algebra.py, mixture.py). A
background that lists the words whose weight differs from a static one is an `ExplicitBackground`
(explicit_background.py).

The simplest background, `StaticBackground`, does not depend on the context: the paper's b(x), with uniform weights, a
unigram, or weights from a file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Self

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY as NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.class_weights import ClassWeights as ClassWeights
from fairseq_llrnn.backgrounds.class_weights import ExplicitWeights, class_log_sums
from fairseq_llrnn.backgrounds.states import States, concatenate, repeat, select


class ExactBuffers(nn.Module):
    """A module whose floating-point buffers follow the model to its device, but never to a lower precision.

    Log weights are differences of large numbers, and counts may exceed 256. Checkpoints do not contain these buffers.
    """

    def keep(self, **tensors: Tensor) -> None:
        """Register buffers."""
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)

    def learn(self, name: str, begin: Tensor, learned: bool) -> None:
        """Register a parameter with the initial value `begin`, or a buffer if `learned` is false."""
        if learned:
            self.register_parameter(name, nn.Parameter(begin))
        else:
            self.keep(**{name: begin})

    def learn_share(self, name: str, share: float, learned: bool, dtype: torch.dtype) -> None:
        """Call `learn` with the log odds of a share in (0, 1), or (0, 1] if it is not learned."""
        self.learn(name, torch.tensor(share, dtype=torch.float64).logit().to(dtype), learned)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = {name: b for name, b in self._buffers.items() if b is not None and b.is_floating_point()}
        super()._apply(fn, recurse)
        for name, exact in before.items():
            moved = self._buffers[name]
            if moved is not None and torch.finfo(moved.dtype).eps > torch.finfo(exact.dtype).eps:
                self._buffers[name] = exact.to(moved.device)
        return self


class BoundBackground:
    """The weights b(K, x) of the next token in one batch or one search (module docstring)."""

    class_of: Tensor  # (V,) int64
    num_classes: int  # S
    is_context_independent = False  # whether all states of a sentence have the same weights
    sparse = False  # whether its masses are one row with sparse updates
    is_exhaustive = False  # whether `sparse_weights` lists every word with weight

    def __init__(self, class_of: Tensor, num_classes: int) -> None:
        self.class_of, self.num_classes = class_of, num_classes

    # ---- methods of a subclass ----------------------------------------------------------------------------------

    def start(self, n: int) -> States:
        """Return the states of `n` empty hypotheses.

        If the background was bound to source sentences, n is their number, and row i is of sentence i.
        """
        raise NotImplementedError(f"{type(self).__name__}: call bind() first, or implement start")

    def advance(self, state: States, tokens: Tensor) -> States:
        """Return new states, after every hypothesis has emitted its token (N,). The old ones do not change."""
        raise NotImplementedError

    def log_weights(self, state: States) -> Tensor:
        """Return log b(K, x) for every word: (N, V), or (1, V) if it is the same for all hypotheses.

        Tokens that must never be generated, such as <s> and <pad>, have −inf.
        """
        raise NotImplementedError

    @property
    def constant_shares(self) -> bool:
        """Whether shares and classes are the same in all states of a sentence, even if masses differ."""
        return self.is_context_independent

    # ---- hidden states, and searches with a limit -----------------------------------------------------------------

    def with_hidden(self, hidden: Tensor) -> BoundBackground:
        """Bind the rows of hidden states (N, H): state row n, or position b·T + t, belongs to hidden row n.

        Only mixtures with weights chosen by the network, and backgrounds made of such mixtures, depend on them.
        """
        return self

    def select_rows(self, index: Tensor) -> BoundBackground:
        """Select rows of `with_hidden`: state row n belongs to hidden row index[n]. index: (M,)."""
        return self

    def with_max_length(self, remaining: int) -> BoundBackground:
        """Return the background of a search step after which at most `remaining` − 1 more tokens may follow.

        `remaining` ≥ 1 counts the token of this step and `</s>`. Words from which no end is in reach get the share
        −inf. Masses do not change, so the scores of all other words do not change. States are those of this background.
        """
        return self

    def steps_to_end(self, state: States) -> Tensor:
        """Return the least number of tokens, `</s>` included, that complete the string: (N,) int64, huge if none do."""
        return self.class_of.new_ones(len(state))

    @property
    def has_dead_ends(self) -> bool:
        """Whether a word that it forbids, but another part of a mixture allows, may leave it without weight
        until `</s>`.
        """
        return False

    # ---- overridden by context classes only (output/context_classes.py) ---------------------------------------------

    def classes(self, state: States, tokens: Tensor) -> Tensor:
        """Return the class of one token (N,) per hypothesis: (N,)."""
        return self.class_of[tokens]

    def only_member(self, state: States, classes: Tensor) -> Tensor:
        """Return the only member of each class: (N, C) -> (N, C), with −1 for a class with more or no members."""
        return self._only_member[classes]

    @cached_property
    def _only_member(self) -> Tensor:
        """(S,)"""
        sizes = torch.bincount(self.class_of, minlength=self.num_classes)
        last = torch.zeros_like(sizes).scatter(0, self.class_of, torch.arange(len(self.class_of), device=sizes.device))
        return last.masked_fill(sizes != 1, -1)

    def to_input_ids(self, tokens: Tensor, state: States | None = None) -> Tensor:
        """Return valid inputs of a network with V rows for tokens (N, T). Row i is of sentence i, or in state i."""
        return tokens

    def in_vocabulary(self, tokens: Tensor, state: States | None = None) -> Tensor:
        """Return whether each token (N, …) has a class: ids ≥ V are strings. Row i is of sentence i, or in state i."""
        return tokens < len(self.class_of)

    @property
    def num_columns(self) -> int:
        """The number of columns of results about all words: V, plus the strings of the sentence."""
        return len(self.class_of)

    def columns(self, state: States) -> Tensor:
        """Return the token of each column: (1, V), or (N, columns)."""
        return torch.arange(len(self.class_of), device=self.class_of.device).unsqueeze(0)

    def column_of(self, tokens: Tensor, state: States | None = None) -> Tensor:
        """Return the columns of the tokens (N, T). Row i is of sentence i, or in state i."""
        return tokens

    def column_classes(self, state: States) -> Tensor:
        """Return the class of each column: (1, V), or (N, columns)."""
        return self.class_of.unsqueeze(0)

    def word_log_probs(self, classes: Tensor, state: States) -> Tensor:
        """Return log p of every word, given log p(σ | K): (N, S) -> (N, V), with −inf for forbidden words."""
        return classes[:, self.class_of] + self.log_shares(state).to(classes.dtype)

    # ---- listed words (class_weights.py) ---------------------------------------------------------------------------

    def root_log_weights(self) -> Tensor | None:
        """Return the log weights of words that `sparse_weights` does not list, (V,), or None."""
        return None

    def sparse_weights(self, state: States) -> ExplicitWeights | None:
        """Return the weights in N states as a factor of the root and exceptions, or None if there is no root."""
        return None

    def possible_words(self) -> Tensor:
        """Return whether each word may have weight in some state: (V,) bool, or True if unknown."""
        root = self.root_log_weights()
        return torch.ones_like(self.class_of, dtype=torch.bool) if root is None else root.isfinite()

    def log_weights_at(self, state: States, rows: Tensor, tokens: Tensor) -> Tensor:
        """Return log b(K, x) of words in some of N states: rows (M,), tokens (M,) -> (M,)."""
        weights = self.log_weights(state)
        return weights[rows if len(weights) > 1 else torch.zeros_like(rows), tokens]

    # ---- slow defaults ------------------------------------------------------------------------------------------

    def log_mass_without(self, state: States, words: Tensor, taken: Tensor) -> Tensor:
        """Return the log mass of each word's class after words are removed from their classes.

        Args:
            words: (N, J), distinct in a row. taken: (N, J) bool, the words to remove; equal for all hypotheses of a
                sentence.

        Returns:
            log Σ_{x ∈ σ(words[n, j]), x not taken in row n} b(K, x): (N, J), with −inf if nothing is left.
        """
        weights = self.log_weights(state).expand(words.size(0), -1)
        out = torch.zeros_like(weights).scatter_add(1, words, taken.to(weights.dtype))  # GPUs cannot scatter bool
        log_mass = class_log_sums(weights.masked_fill(out > 0, NEGATIVE_INFINITY), self.class_of, self.num_classes)
        return log_mass.gather(1, self.class_of[words])

    def log_mass(self, state: States) -> Tensor:
        """Return log B_K(σ): (N, S), or (1, S) if it is the same for all hypotheses."""
        return class_log_sums(self.log_weights(state), self.class_of, self.num_classes)

    def log_mass_of(self, state: States, classes: Tensor) -> Tensor:
        """Return log B_K(σ) of one class (N,) per hypothesis: (N,)."""
        return self.log_mass(state).expand(classes.size(0), -1).gather(1, classes.unsqueeze(1)).squeeze(1)

    def log_shares(self, state: States) -> Tensor:
        """Return log b(K, x) − log B_K(σ(x)) of every word: (N, V) or (1, V), with −inf for a word without weight."""
        weights = self.log_weights(state)
        mass = class_log_sums(weights, self.class_of, self.num_classes)[:, self.class_of]
        return (weights - mass).masked_fill(weights == NEGATIVE_INFINITY, NEGATIVE_INFINITY)

    def log_share_sums(self, state: States) -> tuple[Tensor, Tensor]:
        """Return the number of members of every class with weight, and the sum of their log shares: (N, S) or
        (1, S) each.
        """
        root, listed = self.root_log_weights(), self.sparse_weights(state)
        if root is None or listed is None:
            weights = self.log_weights(state)
            has_weight, none = ~weights.isneginf(), weights.new_zeros(len(weights), self.num_classes)
            counts = none.index_add(1, self.class_of, has_weight.to(weights.dtype))
            total = none.index_add(1, self.class_of, weights.masked_fill(~has_weight, 0.0))
        else:
            counts, total = listed.class_sums(root, self.class_of, self.num_classes)
        mass = self.log_mass(state)
        return counts, total - counts * mass.masked_fill(mass.isneginf(), 0.0)

    def log_share(self, state: States, tokens: Tensor) -> Tensor:
        """Return log b(K, x) − log B_K(σ(x)) of one token (N,) per hypothesis: (N,)."""
        return self.log_shares(state).expand(tokens.size(0), -1).gather(1, tokens.unsqueeze(1)).squeeze(1)

    def best_share(self, state: States) -> Tensor:
        """Return the log share of the best member of every class, −inf for a class without mass.

        (N, S), or (G, S), with row g for the N/G equal states from g·N/G on.
        """
        shares = self.log_shares(state)
        best = shares.new_full((shares.size(0), self.num_classes), NEGATIVE_INFINITY)
        return best.scatter_reduce(1, self.class_of.expand_as(shares), shares, reduce="amax")

    def best_members(self, state: States, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k members with the largest shares of each given class: (N, C) -> log shares and tokens (N, C, k).

        Classes with fewer than k members are padded with −inf (and token 0).
        """
        shares = self.log_shares(state).expand(classes.size(0), -1)
        inside = self.class_of == classes.unsqueeze(-1)  # shape: (N, C, V)
        masked = shares.unsqueeze(1).masked_fill(~inside, NEGATIVE_INFINITY)
        if masked.size(-1) < k:
            masked = nn.functional.pad(masked, (0, k - masked.size(-1)), value=NEGATIVE_INFINITY)
        values, tokens = masked.topk(k, dim=-1)
        return values, tokens.masked_fill(values == NEGATIVE_INFINITY, 0)

    # ---- masses of a search step, or of a batch ---------------------------------------------------------------------

    def class_weights(self, state: States) -> ClassWeights:
        """Return the masses of `log_mass`, without a tensor (N, S) if possible."""
        return ClassWeights(self.log_mass(state), state.size(0) if isinstance(state, Tensor) else len(state))

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

    def teacher_forced(self, previous: Tensor) -> tuple[States, ClassWeights]:
        """Return the states before each position of a batch (B, T), as `flat_states`, and their masses: N = B·T."""
        if self.is_context_independent:
            start = self.start(previous.size(0))
            return repeat(start, previous.size(1)), self.class_weights(start).repeated(previous.size(1))
        states = self.flat_states(previous)
        return states, self.class_weights(states)


class Background(BoundBackground, ExactBuffers):
    """Parameters and tables of a background. If it needs no `bind`, it is its own bound object."""

    of_buffers: tuple[str, ...] = ("_only_member",)  # cached properties on the device of the buffers

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
                `previous` of `teacher_forced` may be shorter.
        """
        return self

    @property
    def needs_length_limit(self) -> bool:
        """Whether a string cannot end in some states, so that a search needs the remaining length."""
        bound = self.bind()
        return bound.with_max_length(2) is not bound

    def gates(self, hidden_size: int) -> None:
        """Make the layers that choose weights, given hidden states (H), once, before `with_hidden` is called.

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

    def start(self, n: int) -> Tensor:
        return self.class_of.new_zeros((n, 0))

    def advance(self, state: States, tokens: Tensor) -> Tensor:
        return state

    def root_log_weights(self) -> Tensor | None:
        return self.word_log_weight

    def ranked_weights(self, places: Tensor) -> Tensor:
        """Return the log weights of the words at places of ranked_members, of any shape."""
        return self.word_log_weight[self.ranked_members[places]]

    def sparse_weights(self, state: States) -> ExplicitWeights | None:
        nothing = self.word_log_weight[:0]
        return ExplicitWeights(
            len(self.class_of), nothing.long(), nothing, self.word_log_weight.new_zeros(len(state)), None
        )

    def log_weights(self, state: States) -> Tensor:
        return self.word_log_weight.unsqueeze(0)

    def log_mass(self, state: States) -> Tensor:
        return self.class_log_mass.unsqueeze(0)

    def log_mass_of(self, state: States, classes: Tensor) -> Tensor:
        return self.class_log_mass[classes]

    def log_shares(self, state: States) -> Tensor:
        return self.word_log_share.unsqueeze(0)

    def log_share(self, state: States, tokens: Tensor) -> Tensor:
        return self.word_log_share[tokens]

    def log_mass_without(self, state: States, words: Tensor, taken: Tensor) -> Tensor:
        share = self.word_log_share[words].masked_fill(~taken, NEGATIVE_INFINITY)
        classes = self.class_of[words]
        # shape: (N, J, J), the words taken out of each word's class
        shares_in_class = share.unsqueeze(1).expand(-1, words.size(1), -1)
        shares_in_class = shares_in_class.masked_fill(classes.unsqueeze(2) != classes.unsqueeze(1), NEGATIVE_INFINITY)
        # log(1 − Σ exp share): the log share is precise even if little is left
        lost = shares_in_class.logsumexp(2).clamp_max(-torch.finfo(share.dtype).eps)
        left = self.class_support[classes] - (~shares_in_class.isneginf()).sum(2)
        rest = self.class_log_mass[classes] + (-torch.expm1(lost)).log()
        return rest.masked_fill(left <= 0, NEGATIVE_INFINITY)

    def best_share(self, state: States) -> Tensor:
        return self.best_of_class.unsqueeze(0)

    def best_members(self, state: States, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        # shape: (N, C, k), positions in ranked_members; those past the end of a class are masked
        rank = self.class_starts[classes].unsqueeze(-1) + torch.arange(k, device=classes.device)
        past = rank >= self.class_starts[classes + 1].unsqueeze(-1)
        tokens = self.ranked_members[rank.clamp(max=self.ranked_members.numel() - 1)]
        values = self.word_log_share[tokens].masked_fill(past, NEGATIVE_INFINITY)
        return values, tokens.masked_fill(past, 0)
