"""The interface of a background: a state machine over tokens that gives every next token a weight b(K, x).

Sizes: V words, S signatures, N hypotheses, B batch, T time. All weights are natural logarithms; −inf forbids.

    module = prior.background()                    nn.Module: parameters and tables
    bound  = module.bind(source, text)             a plain object for one batch or one search

    state = bound.start(n)                         one state per hypothesis (first dimension n)
    state = bound.advance(state, tokens)           after the tokens (N,) were emitted
    bound.log_mass(state)          (N, S) or (1, S)    log Σ_{x∈σ} b(K, x)
    bound.log_share(state, tokens) (N,)                log b(K, x) − log B_K(σ(x))
    states, weights = bound.teacher_forced(previous)   all positions of a batch; ClassWeights (class_weights.py)

`bind` returns a `BoundBackground`. It depends on the source sentences of the batch, and in training on its text. Its
methods `with_hidden`, `select_rows` and `with_max_length` return other bound objects. No module is made or copied for a
batch, and nothing that a bound object computes outlives it.

If words have classes of their own in a context (output/context_classes.py), there are more classes than signatures, and
the class of a token depends on the context: use `classes(state, tokens)` instead of `class_of`.

A new background is a subclass of `Background` with `start`, `advance` and `log_weights(state) -> (N, V)` or (1, V). If
it depends on nothing else, it is its own bound object. All other methods have slow defaults; a faster override must
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


class ExactBuffers(nn.Module):
    """A module whose buffers of numbers follow the model to its device, but never to a lower precision.

    Log weights are differences of large numbers, and counts may be above 256. No checkpoint holds them.
    """

    def keep(self, **tensors: Tensor) -> None:
        """Register buffers."""
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)

    def learn(self, name: str, begin: Tensor, learned: bool) -> None:
        """Register a parameter that begins there, or, where it is not learned, a buffer."""
        if learned:
            self.register_parameter(name, nn.Parameter(begin))
        else:
            self.keep(**{name: begin})

    def learn_share(self, name: str, share: float, learned: bool, dtype: torch.dtype) -> None:
        """As `learn`, of the log odds of a share above 0 and below 1; of 1, if it is not learned."""
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
    sparse = False  # whether its masses are one row with entries
    is_exhaustive = False  # whether `sparse_weights` lists every word that has weight
    state_columns_per_token = 0  # by how many columns a state gets wider with each word

    def __init__(self, class_of: Tensor, num_classes: int) -> None:
        self.class_of, self.num_classes = class_of, num_classes

    # ---- what a subclass supplies -------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        """Return the state of `n` hypotheses that have emitted nothing; the first dimension is n.

        If the background was bound to source sentences, n is their number, and row i is of sentence i.
        """
        raise NotImplementedError(f"{type(self).__name__}: call bind() first, or implement start")

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        """Return the state after every hypothesis has emitted its token (N,)."""
        raise NotImplementedError

    def log_weights(self, state: Tensor) -> Tensor:
        """Return log b(K, x) for every word: (N, V), or (1, V) if it is the same for all hypotheses."""
        raise NotImplementedError

    @property
    def constant_shares(self) -> bool:
        """As `is_context_independent`, of shares and classes alone: what changes may have other masses."""
        return self.is_context_independent

    # ---- hidden states, and searches with a limit -----------------------------------------------------------------

    def with_hidden(self, hidden: Tensor) -> BoundBackground:
        """Bind the rows of hidden states (N, H): state row n, or position b·T + t, is of hidden row n.

        Only mixtures whose weights the network chooses depend on them, and backgrounds made of such mixtures.
        """
        return self

    def select_rows(self, index: Tensor) -> BoundBackground:
        """Select rows of what `with_hidden` bound: state row n is of hidden row index[n]; index: (M,)."""
        return self

    def with_max_length(self, remaining: int) -> BoundBackground:
        """Return the background of a search step after which at most `remaining` − 1 more tokens may follow.

        `remaining` ≥ 1 counts the token of this step and `</s>`. Words after which no end is in reach get the share
        −inf; masses do not change, and so the scores of all other words do not, either. States are those of this
        background.
        """
        return self

    def steps_to_end(self, state: Tensor) -> Tensor:
        """The least number of tokens, `</s>` included, that complete the string: (N,) int64; huge where none does."""
        return self.class_of.new_ones(len(state))

    @property
    def has_dead_ends(self) -> bool:
        """Whether it may have no weight until the sentence ends, after a word that it forbids and another one gives."""
        return False

    # ---- what only context classes override (output/context_classes.py) ---------------------------------------------

    def classes(self, state: Tensor, tokens: Tensor) -> Tensor:
        """The class of one token (N,) per hypothesis: (N,)."""
        return self.class_of[tokens]

    def only_member(self, state: Tensor, classes: Tensor) -> Tensor:
        """The token of every class of one member: (N, C) -> (N, C); −1 for a class with another number."""
        return self._only_member[classes]

    @cached_property
    def _only_member(self) -> Tensor:
        """(S,)"""
        sizes = torch.bincount(self.class_of, minlength=self.num_classes)
        some = torch.zeros_like(sizes).scatter(0, self.class_of, torch.arange(len(self.class_of), device=sizes.device))
        return some.masked_fill(sizes != 1, -1)

    def to_input_ids(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """The tokens (N, T) as a network with rows for V words may read them: row i is sentence i, or of state i."""
        return tokens

    def in_vocabulary(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """Whether each token (N, …) has a class: ids ≥ V are strings. Row i is of sentence i, or of state i."""
        return tokens < len(self.class_of)

    @property
    def num_columns(self) -> int:
        """How many columns answers about all words have: V, and more for strings of the condition's own."""
        return len(self.class_of)

    def columns(self, state: Tensor) -> Tensor:
        """The token of each column: (1, V), or (N, columns)."""
        return torch.arange(len(self.class_of), device=self.class_of.device).unsqueeze(0)

    def column_of(self, tokens: Tensor, state: Tensor | None = None) -> Tensor:
        """The columns of the tokens (N, T), of sentence i in row i, or of state i."""
        return tokens

    def column_classes(self, state: Tensor) -> Tensor:
        """The class of each column: (1, V), or (N, columns)."""
        return self.class_of.unsqueeze(0)

    def word_log_probs(self, classes: Tensor, state: Tensor) -> Tensor:
        """log p of every word from log p(σ | K): (N, S) -> (N, V). −inf for forbidden words."""
        return classes[:, self.class_of] + self.log_shares(state).to(classes.dtype)

    # ---- words that it lists (class_weights.py) --------------------------------------------------------------------

    def root_log_weights(self) -> Tensor | None:
        """Return the log weights of words that `sparse_weights` does not list, (V,), or None."""
        return None

    def sparse_weights(self, state: Tensor) -> ExplicitWeights | None:
        """The weights in N states as a factor of the root and exceptions; None where there is no root."""
        return None

    def possible_words(self) -> Tensor:
        """Whether each word may have weight in some state, (V,) bool; True, too, where that is not known."""
        root = self.root_log_weights()
        return torch.ones_like(self.class_of, dtype=torch.bool) if root is None else root.isfinite()

    def log_weights_at(self, state: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        """log b(K, x) of words in some of N states: rows (M,), tokens (M,) -> (M,)."""
        weights = self.log_weights(state)
        return weights[rows if len(weights) > 1 else torch.zeros_like(rows), tokens]

    # ---- slow defaults ------------------------------------------------------------------------------------------

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        """The mass of each word's class when words are taken out of their classes.

        Args:
            words: (N, J), different ones in a row. taken: (N, J) bool, which of them are taken out; hypotheses of one
                sentence agree in it.

        Returns:
            log Σ_{x ∈ σ(words[n, j]), x not taken in row n} b(K, x): (N, J); −inf where nothing is left.
        """
        weights = self.log_weights(state).expand(words.size(0), -1)
        out = torch.zeros_like(weights).scatter_add(1, words, taken.to(weights.dtype))  # a GPU scatters no bool
        log_mass = class_log_sums(weights.masked_fill(out > 0, NEGATIVE_INFINITY), self.class_of, self.num_classes)
        return log_mass.gather(1, self.class_of[words])

    def log_mass(self, state: Tensor) -> Tensor:
        """log B_K(σ): (N, S), or (1, S) where it is the same for all hypotheses."""
        return class_log_sums(self.log_weights(state), self.class_of, self.num_classes)

    def log_mass_of(self, state: Tensor, classes: Tensor) -> Tensor:
        """log B_K(σ) of one class (N,) per hypothesis: (N,)."""
        return self.log_mass(state).expand(classes.size(0), -1).gather(1, classes.unsqueeze(1)).squeeze(1)

    def log_shares(self, state: Tensor) -> Tensor:
        """log b(K, x) − log B_K(σ(x)) for every word: (N, V) or (1, V); −inf for a word without weight."""
        weights = self.log_weights(state)
        mass = class_log_sums(weights, self.class_of, self.num_classes)[:, self.class_of]
        return (weights - mass).masked_fill(weights == NEGATIVE_INFINITY, NEGATIVE_INFINITY)

    def log_share_sums(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """How many members of every class have weight, and the sum of their log shares: (N, S) or (1, S) each."""
        root, listed = self.root_log_weights(), self.sparse_weights(state)
        if root is None or listed is None:
            weights = self.log_weights(state)
            has_weight, none = ~weights.isneginf(), weights.new_zeros(len(weights), self.num_classes)
            many = none.index_add(1, self.class_of, has_weight.to(weights.dtype))
            total = none.index_add(1, self.class_of, weights.masked_fill(~has_weight, 0.0))
        else:
            many, total = listed.class_sums(root, self.class_of, self.num_classes)
        mass = self.log_mass(state)
        return many, total - many * mass.masked_fill(mass.isneginf(), 0.0)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        """log b(K, x) − log B_K(σ(x)) of one token (N,) per hypothesis: (N,)."""
        return self.log_shares(state).expand(tokens.size(0), -1).gather(1, tokens.unsqueeze(1)).squeeze(1)

    def best_share(self, state: Tensor) -> Tensor:
        """The log share of the best member of every class, −inf for a class without mass.

        (N, S); or (G, S), of which row g is that of the N/G states from g·N/G on, which are alike.
        """
        shares = self.log_shares(state)
        best = shares.new_full((shares.size(0), self.num_classes), NEGATIVE_INFINITY)
        return best.scatter_reduce(1, self.class_of.expand_as(shares), shares, reduce="amax")

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k members with the largest shares of each given class: (N, C) -> log shares and tokens (N, C, k).

        Classes with fewer than k members are filled with −inf (and token 0).
        """
        shares = self.log_shares(state).expand(classes.size(0), -1)
        inside = self.class_of == classes.unsqueeze(-1)  # shape: (N, C, V)
        masked = shares.unsqueeze(1).masked_fill(~inside, NEGATIVE_INFINITY)
        if masked.size(-1) < k:
            masked = nn.functional.pad(masked, (0, k - masked.size(-1)), value=NEGATIVE_INFINITY)
        values, tokens = masked.topk(k, dim=-1)
        return values, tokens.masked_fill(values == NEGATIVE_INFINITY, 0)

    # ---- masses of a search step, or of a whole batch (training) ----------------------------------------------------

    def class_weights(self, state: Tensor) -> ClassWeights:
        """The masses of `log_mass`, without a tensor (N, S) where that can be."""
        return ClassWeights(self.log_mass(state), state.size(0))

    def flat_states(self, previous: Tensor) -> Tensor:
        """States before each position of a batch whose inputs are `previous` (B, T): (B·T, …), position b·T + t.

        previous[:, 0] is the start symbol, which the state machine does not read.
        """
        states = [self.start(previous.size(0))]
        if self.is_context_independent:
            return states[0].repeat_interleave(previous.size(1), 0)
        for tokens in previous[:, 1:].unbind(1):
            states.append(self.advance(states[-1], tokens))
        return torch.stack(states, dim=1).flatten(0, 1)

    def teacher_forced(self, previous: Tensor) -> tuple[Tensor, ClassWeights]:
        """The states before each position of a batch (B, T), as `flat_states`, and their masses: N = B·T."""
        if self.is_context_independent:
            start = self.start(previous.size(0))
            return start.repeat_interleave(previous.size(1), 0), self.class_weights(start).repeated(previous.size(1))
        states = self.flat_states(previous)
        return states, self.class_weights(states)


class Background(BoundBackground, ExactBuffers):
    """Parameters and tables of a background. If it depends on no condition, it is its own bound object."""

    of_buffers: tuple[str, ...] = ("_only_member",)  # cached properties on the device of the buffers

    def __init__(self, class_of: Tensor, num_classes: int) -> None:
        ExactBuffers.__init__(self)
        self.keep(class_of=class_of)
        self.num_classes = num_classes

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        """Return the background of a batch, or of the sentences of a search.

        Args:
            source: (B, L) source tokens, padded with the source's pad. Some may be strings, with numbers beyond the
                source dictionary. None: without a source.
            text: in training only, the target text of the batch, (B, T), padded: the start symbol, then the words,
                <unk> for words that are not in the dictionary. Its own part in the counts that the background was
                estimated from is left out (leave-one-out, cross-fitting); else training sees better weights than any
                other text. Sentences end with `</s>`, and the last one of a row where the row ends. The `previous` of
                `teacher_forced` may be shorter if rows have one sentence.
        """
        return self

    @property
    def needs_length_limit(self) -> bool:
        """Whether a string cannot end in some states, so that a search has to know the length that is left."""
        bound = self.bind()
        return bound.with_max_length(2) is not bound

    def gates(self, hidden_size: int) -> None:
        """Make the layers that choose weights from hidden states (H), once, before `with_hidden` is called.

        The default calls the backgrounds that this one is made of.
        """
        for part in self.children():
            if isinstance(part, Background):
                part.gates(hidden_size)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        for name in self.of_buffers:
            self.__dict__.pop(name, None)
        return super()._apply(fn, recurse)


class StaticBackground(Background):
    """b(K, x) = b(x). Masses and shares are computed once, in float64, and kept so."""

    word_log_weight: Tensor  # (V,)
    word_log_share: Tensor  # (V,)
    class_log_mass: Tensor  # (S,)
    ranked_members: Tensor  # (V,) words by class, the largest share first inside each
    class_starts: Tensor  # (S + 1,) where each class begins in ranked_members
    class_support: Tensor  # (S,) how many members have weight
    best_of_class: Tensor  # (S,) the largest share
    is_context_independent = True

    def __init__(self, class_of: Tensor, num_classes: int, log_weights: Tensor) -> None:
        """class_of: (V,) int64. log_weights: (V,) natural logarithms; −inf forbids a word."""
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

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return state

    def root_log_weights(self) -> Tensor | None:
        return self.word_log_weight

    def ranked_weights(self, places: Tensor) -> Tensor:
        """The log weights of the words at places in ranked_members; any shape."""
        return self.word_log_weight[self.ranked_members[places]]

    def sparse_weights(self, state: Tensor) -> ExplicitWeights | None:
        nothing = self.word_log_weight[:0]
        return ExplicitWeights(
            len(self.class_of), nothing.long(), nothing, self.word_log_weight.new_zeros(len(state)), None
        )

    def log_weights_at(self, state: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        return self.word_log_weight[tokens]

    def teacher_forced(self, previous: Tensor) -> tuple[Tensor, ClassWeights]:
        positions = previous.numel()
        return self.class_of.new_zeros((positions, 0)), ClassWeights(self.class_log_mass.unsqueeze(0), positions)

    def class_weights(self, state: Tensor) -> ClassWeights:
        return ClassWeights(self.class_log_mass.unsqueeze(0), len(state))

    def log_weights(self, state: Tensor) -> Tensor:
        return self.word_log_weight.unsqueeze(0)

    def log_mass(self, state: Tensor) -> Tensor:
        return self.class_log_mass.unsqueeze(0)

    def log_mass_of(self, state: Tensor, classes: Tensor) -> Tensor:
        return self.class_log_mass[classes]

    def log_shares(self, state: Tensor) -> Tensor:
        return self.word_log_share.unsqueeze(0)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self.word_log_share[tokens]

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        share = self.word_log_share[words].masked_fill(~taken, NEGATIVE_INFINITY)
        classes = self.class_of[words]
        # shape: (N, J, J), the words taken out of each word's class
        beside = share.unsqueeze(1).expand(-1, words.size(1), -1)
        beside = beside.masked_fill(classes.unsqueeze(2) != classes.unsqueeze(1), NEGATIVE_INFINITY)
        # from the share, which is near 0 where little is left, and has its digits there: log(1 − Σ exp share)
        lost = beside.logsumexp(2).clamp_max(-torch.finfo(share.dtype).eps)
        left = self.class_support[classes] - (~beside.isneginf()).sum(2)
        rest = self.class_log_mass[classes] + (-torch.expm1(lost)).log()
        return rest.masked_fill(left <= 0, NEGATIVE_INFINITY)

    def best_share(self, state: Tensor) -> Tensor:
        return self.best_of_class.unsqueeze(0)

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        # shape: (N, C, k), positions in ranked_members; those past the end of a class are masked
        rank = self.class_starts[classes].unsqueeze(-1) + torch.arange(k, device=classes.device)
        past = rank >= self.class_starts[classes + 1].unsqueeze(-1)
        tokens = self.ranked_members[rank.clamp(max=self.ranked_members.numel() - 1)]
        values = self.word_log_share[tokens].masked_fill(past, NEGATIVE_INFINITY)
        return values, tokens.masked_fill(past, 0)
