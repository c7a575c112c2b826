"""The log-linear head: hidden states of any network -> p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)), in plain torch.

Sizes: B batch, T time, N hypotheses, L source length, V words, S signatures, J₁ slots of evidence, H hidden width, D
embedding width, E encoder width. Probabilities are natural logarithms. Source: Dymetman & Xiao 2016, §2.

    loss = head.loss(hidden, targets, previous=previous, source=source)      # a batch at once
    state = head.start(n, source=source)                                     # a search
    values, tokens = head.top_k(hidden_now, state, k=5)
    state = head.advance(state, tokens_chosen)

`loss` and `log_probs` are made of three steps, which a training loop can also call itself: `condition` (what is known
before the network reads), `batch` (its hidden states, and rows of all classes), `target_log_probs` and others.

In training mode (`head.train()`), what a background was estimated from is left out: n-grams are cross-fitted, lexical
translations leave the sentence at hand out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.explain.explanation import Explanation, explain
from fairseq_llrnn.head import expert_terms, split, target_terms
from fairseq_llrnn.head.class_rows import other_scores
from fairseq_llrnn.head.records import Batch, Condition, RowPair, Rows
from fairseq_llrnn.head.search import HeadSearch
from fairseq_llrnn.head.split import SplitBatch, SplitCondition
from fairseq_llrnn.head.tree import explained_choices
from fairseq_llrnn.head.zero_mass import LEAVE_OUT
from fairseq_llrnn.output.context_classes import strings_in


class LogLinearHead(HeadSearch):
    """The output layer (and, if asked for, the input embedding) over a prior."""

    # ---- a batch: before the network reads it, after, and what a criterion asks --------------------------------------

    def condition(self, previous: Tensor, source: Tensor | None = None) -> Condition | SplitCondition:
        """What is known of a batch before the network reads it.

        Args:
            previous: the tokens before each position, (B, T): `</s>` first. source: (B, L), padded.

        Returns:
            Without a gradient to keep, a large batch in parts (split.py).
        """
        at_once = len(previous)
        if not (self.training or torch.is_grad_enabled()):
            at_once = split.sentences_at_once(self.background, previous)
        if at_once >= len(previous):
            return self._condition(previous, source)
        rows = split.spans(len(previous), at_once)
        return SplitCondition(rows, [self._condition(previous[r], split.some(source, r)) for r in rows])

    def _condition(self, previous: Tensor, source: Tensor | None) -> Condition:
        known = self._known(previous)
        background, leave_out = self.background, None
        if self.training:
            leave_out = known if self.strings is None else self.strings.as_in_text(previous, known)
        if source is not None:
            background = background.given(source, leave_out)
        if leave_out is not None:
            background = background.cross_fitted(leave_out)
        background = self._with_experts(background, source)
        return Condition(background, known, self._readable(previous, known, background, None))

    def batch(
        self, hidden: Tensor, condition: Condition | SplitCondition, source_states: Tensor | None = None,
        spelling: Tensor | None = None,
    ) -> Batch | SplitBatch:  # fmt: skip
        """Hidden states (B, T, H) of a conditioned batch, with the rows of all classes and the masses.

        Args:
            source_states: of the encoder, (B, L, E), where the prior has evidence.
            spelling: what unknown words are spelled from, (B, T, speller_input), where that is not `hidden`.
        """
        if isinstance(condition, SplitCondition):
            return SplitBatch(hidden, condition, source_states, self._static_rows(), self._batch, spelling)
        return self._batch(hidden, condition, source_states, None, spelling)

    def _batch(
        self, hidden: Tensor, condition: Condition, source_states: Tensor | None = None, shared: Rows | None = None,
        spelling: Tensor | None = None,
    ) -> Batch:  # fmt: skip
        """shared: of `_static_rows`, to use again."""
        background = condition.background.with_hidden(hidden.flatten(0, 1))
        rows = self._rows(background, source_states, None, shared)
        exceptions: RowPair | None = None
        if self.experts is not None:
            hidden, rows, exceptions = expert_terms.in_batch(
                self.experts, background, hidden, condition.previous, lambda: self._widened(rows, background)
            )
        states, masses = background.along(condition.previous)
        if self.temperature is not None:
            masses = self.temperature.applied(masses, hidden.flatten(0, 1))
        others = other_scores(self.opened, hidden, rows, rows.slots, exceptions)
        return Batch(hidden, background, states, masses, rows, others, spelling)

    def class_scores(self, batch: Batch) -> Tensor:
        """aᵀφ of all classes: (B, T, S + J), at least float32."""
        return batch.rows.exact.scores(batch.hidden, batch.others)

    def target_log_probs(self, batch: Batch | SplitBatch, targets: Tensor) -> Tensor:
        """log p(target | K) in nats: targets (B, T) -> (B, T); −inf where the background forbids it."""
        if isinstance(batch, SplitBatch):
            return batch.per_position(lambda part, rows: self.target_log_probs(part, targets[rows]))
        return target_terms.target_log_probs(self.output, self.strings, batch, targets)

    def smoothing_gain(self, batch: Batch | SplitBatch, targets: Tensor) -> Tensor:
        """What label smoothing adds to these log-probabilities, in units of its ε: (B, T)."""
        if isinstance(batch, SplitBatch):
            return batch.per_position(lambda part, rows: self.smoothing_gain(part, targets[rows]))
        return target_terms.smoothing_gain(self.output, self.strings, self.log_sizes, batch, targets)

    def adaptor_norm(self, batch: Batch | SplitBatch, p: float = 2.0) -> Tensor:
        """‖a(K)‖ₚ at every position: (B, T); paper, §2.2. Experts' weights are in a. OptionError: there is a tree."""
        if self.tree is not None:
            raise OptionError(
                "--adaptor-penalty: not supported with --output-tree, where the nodes' rows count beside the adaptor; "
                "leave one of them out"
            )
        if isinstance(batch, SplitBatch):
            return batch.per_position(lambda part, _: self.adaptor_norm(part, p))
        return target_terms.adaptor_norm(self.output, self.experts, batch.hidden, p)

    def are_slots(self, batch: Batch | SplitBatch, targets: Tensor) -> Tensor:
        """Which of the targets (B, T) a slot of evidence stands for: (B, T) bool.

        Slots that only single out words of the dictionary (translations) are none of them.
        """
        if isinstance(batch, SplitBatch):
            return batch.per_position(lambda part, rows: self.are_slots(part, targets[rows]))
        words = targets if self.slot_rows is not None else targets.masked_fill(targets >= self.num_words, self.unk)
        classes = batch.background.classes(batch.states, words.flatten()).view_as(words)
        static = self.output.rows.num_rows
        layer = strings_in(batch.background)
        if layer is None:
            return torch.zeros_like(targets, dtype=torch.bool)
        added = layer.source.log_added(layer.source.start(len(targets)))  # shape: (B, J₁)
        slot = (classes - static).clamp(0, added.size(1) - 1)
        return (classes == static + slot) & ~added.gather(1, slot).isneginf()

    def word_log_probs(self, batch: Batch | SplitBatch) -> Tensor:
        """log p of all words, and of strings that slots offer: (B, T, V + J₁)."""
        if isinstance(batch, SplitBatch):
            return batch.per_word(self.word_log_probs)
        classes = batch.rows.classes.distribution(batch.hidden.flatten(0, 1), batch.others.flat(), batch.masses)
        return batch.background.word_log_probs(classes.log_probs, batch.states).view(*batch.hidden.shape[:2], -1)

    def possible(self, targets: Tensor, source: Tensor | None = None) -> Tensor:
        """Which sentences (B, T), padded, the background gives mass from the first word to the last: (B,) bool.

        To leave those out of a text that a grammar has not: `loss` refuses them. source: (B, L).
        """
        condition, known = self.condition(self.previous(targets), source), self._known(targets)
        shares = [
            part.background.log_share(part.background.flat_states(part.previous), known[rows].flatten())
            for rows, part in condition.parts()
        ]
        return (torch.cat(shares).view_as(targets).isfinite() | targets.eq(self.pad)).all(1)

    # ---- the same in one line -------------------------------------------------------------------------------------

    def loss(
        self,
        hidden: Tensor,
        targets: Tensor,
        *,
        previous: Tensor | None = None,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
        label_smoothing: float = 0.0,
        adaptor_penalty: float = 0.0,
        reduction: str = "mean",
    ) -> Tensor:
        """−log p(target | K) in nats, over all targets but padding.

        Args:
            hidden: (B, T, H). targets: (B, T), padded with `<pad>`.
            previous: the tokens before each position, (B, T); None: `self.previous(targets)`.
            source: (B, L), where the background depends on a source. source_states: as in `batch`.
            label_smoothing: the share ε of every target that is spread over all words that may come next.
            adaptor_penalty: the weight of ‖a(K)‖₂ (paper, §2.2).
            reduction: "mean" over the targets, "sum", or "none": (B, T), 0 at padding.

        Raises:
            DataError: shapes that do not fit; a target to which the background gives no mass.
        """
        if reduction not in ("mean", "sum", "none"):
            raise OptionError(f"reduction: expected mean, sum or none, found {reduction!r}")
        previous = self.previous(targets) if previous is None else previous
        self._check_shapes(hidden, previous, targets)
        batch = self.batch(hidden, self.condition(previous, source), source_states)
        log_prob = self.target_log_probs(batch, targets)
        self.refuse_forbidden(log_prob, targets, fix=LEAVE_OUT)
        real = targets.ne(self.pad)
        loss = -log_prob.masked_fill(~real, 0.0)
        if label_smoothing:
            loss = loss - label_smoothing * self.smoothing_gain(batch, targets).masked_fill(~real, 0.0)
        if adaptor_penalty:
            loss = loss + adaptor_penalty * self.adaptor_norm(batch).masked_fill(~real, 0.0)
        if reduction == "none":
            return loss
        return loss.sum() if reduction == "sum" else loss.sum() / real.sum().clamp_min(1)

    def log_probs(
        self,
        hidden: Tensor,
        *,
        previous: Tensor | None = None,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
    ) -> Tensor:
        """log p of all words at every position: hidden (B, T, H) -> (B, T, V + J₁), J₁ the slots of evidence.

        Args:
            previous: (B, T), which only a background without context does without.

        Raises:
            DataError: shapes that do not fit, or no `previous` where the background needs it.
        """
        if previous is None:
            if not self.background.constant or self.experts is not None:
                raise DataError(
                    "LogLinearHead.log_probs: expected `previous`, the tokens before each position, since the "
                    "background depends on them, found None; give it (B, T)"
                )
            previous = torch.full(hidden.shape[:2], self.eos, device=hidden.device)
        self._check_shapes(hidden, previous, previous)
        return self.word_log_probs(self.batch(hidden, self.condition(previous, source), source_states))

    def explain(
        self,
        hidden: Tensor,
        tokens: Tensor,
        *,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
        top: int = 5,
    ) -> list[Explanation]:
        """Why each token of one sentence has its probability: log p = log b + aᵀφ − log Z, term by term.

        Args:
            hidden: (1, T, H), the network's states before each token. tokens: (T,), the last one `</s>`.
            source: (1, L). source_states: (1, L, E). top: how many predictions, features and source words to name.
        """
        with torch.inference_mode():
            condition = self._condition(self.previous(tokens.unsqueeze(0)), source)
            return self.explain_batch(self._batch(hidden, condition, source_states), tokens, top)

    def explain_batch(self, batch: Batch, tokens: Tensor, top: int) -> list[Explanation]:
        """As `explain`, of a batch of one sentence that the network has read."""
        slot_rows = None if batch.rows.slots is None else batch.rows.slots[0][0]  # shape: (J₁, H')
        opened = None
        if self.opened is not None and batch.others.opened is not None:
            opened = self.opened, batch.others.opened[1][0]
        masses, powered, choices = batch.log_mass[0], None, None
        if self.tree is None:
            scores = self.class_scores(batch)[0]
        else:
            scores, choices = explained_choices(batch, tokens)
        if self.temperature is not None:
            before = batch.background.masses(batch.states).dense()
            powered = (masses - before).masked_fill(before.isneginf(), 0.0)
            scores, masses = scores + powered, before
        given = self.prior, self.output, batch.background, batch.hidden[0], tokens
        return list(explain(*given, scores, masses, top, slot_rows, opened, powered, choices))

    def _check_shapes(self, hidden: Tensor, previous: Tensor, targets: Tensor) -> None:
        if hidden.dim() != 3 or hidden.size(2) != self.hidden_size:
            raise DataError(
                f"LogLinearHead: expected hidden states (B, T, {self.hidden_size}), found {tuple(hidden.shape)}; give "
                "those of the last layer, batch first"
            )
        for name, tokens in (("previous", previous), ("targets", targets)):
            if tokens.shape != hidden.shape[:2]:
                raise DataError(
                    f"LogLinearHead: expected {name} (B, T) = {tuple(hidden.shape[:2])}, as the hidden states have "
                    f"them, found {tuple(tokens.shape)}; give one token for each position"
                )
