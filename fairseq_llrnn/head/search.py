"""The log-linear head in a search: the states of hypotheses, and the distribution of the next token of each.

Sizes: N hypotheses, t tokens, L source length, H hidden width, E encoder width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.numbers import SCORE_TEMPERATURES
from fairseq_llrnn.head import expert_terms
from fairseq_llrnn.head.class_rows import other_scores
from fairseq_llrnn.head.layers import HeadLayers
from fairseq_llrnn.head.records import State, Step, shares_and_classes
from fairseq_llrnn.output.context_classes import strings_of


class HeadSearch(HeadLayers):
    """What a LogLinearHead says word by word."""

    def start(
        self,
        batch_size: int,
        *,
        source: Tensor | None = None,
        source_states: Tensor | None = None,
        pinned: Sequence[int] = (),
    ) -> State:
        """The state of N = `batch_size` hypotheses that have written nothing.

        Args:
            source: (N, L); equal neighbours, as a beam search has them, are looked at once. source_states: (N, L, E).
            pinned: tokens whose probabilities every step is asked for (`Step.log_probs_of_pinned`).
        """
        background, sentence, sources = self.background, None, source
        if source is not None:
            sources, sentence = torch.unique_consecutive(source, return_inverse=True, dim=0)
            background = background.given(sources)
        background = self._with_experts(background, sources)
        begin = background.start(batch_size if sentence is None else len(sources))  # type: ignore[arg-type]
        states = begin if sentence is None else begin[sentence]
        rows = self._rows(background, source_states, sentence)
        if self.experts is not None:
            rows = self._widened(rows, background)
        state = State(background, states, rows)
        if not pinned:
            return state
        tokens = torch.tensor(list(pinned), device=states.device)
        shares = None
        if background.constant_shares:
            shares = shares_and_classes(background, begin, tokens.expand(len(begin), -1))
            if sentence is not None:
                shares = shares[0][sentence], shares[1][sentence]
        return replace(state, pinned=tokens, pinned_shares=shares)

    def advance(self, state: State, tokens: Tensor) -> State:
        """The state after every hypothesis has written its token (N,), or several ones (N, t)."""
        for token in [tokens] if tokens.dim() == 1 else tokens.unbind(1):
            states = state.background.advance(state.states, self._known(token))
            rows = state.rows if self.experts is None else self._widened(state.rows, state.background)
            state = replace(state, states=states, rows=rows, length=state.length + 1)
        return state

    def step(self, hidden: Tensor, state: State) -> Step:
        """The distribution of the next token: hidden states (N, H)."""
        background, hidden = state.reachable.with_hidden(hidden), hidden.unsqueeze(1)
        slots, exceptions = state.rows.slots, None
        if slots is not None:  # every hypothesis knows its sentence
            layer, own = strings_of(state.background, state.states)
            sentence = layer.contexts_of(own)
            slots = slots[0][sentence], slots[1][sentence]
        if self.experts is not None:
            hidden, exceptions = expert_terms.in_step(self.experts, background, hidden, state.states, state.rows, slots)
        others = other_scores(self.opened, hidden, state.rows, slots, exceptions).first()
        masses = background.masses(state.states)
        if self.temperature is not None:
            masses = self.temperature.applied(masses, hidden[:, 0])
        return Step(hidden[:, 0], others, masses, background, state)

    def top_k(self, hidden: Tensor, state: State, k: int, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        """The k most probable next tokens, exactly: hidden (N, H) -> log p and tokens, (N, k) each, the best first.

        Args:
            temperature: divides aᵀφ; the background is not tempered.
        """
        return self.tempered(self.step(hidden, state), temperature).top_k(k)

    @staticmethod
    def tempered(step: Step, temperature: float) -> Step:
        """The step with aᵀφ divided by a temperature. Raises OptionError for one that is not in SCORE_TEMPERATURES."""
        least, most = SCORE_TEMPERATURES
        if not least <= temperature <= most:
            raise OptionError(f"temperature {temperature}: expected a number from {least:g} to {most:g}")
        return step if temperature == 1.0 else replace(step, temperature=temperature)

    def readable(self, tokens: Tensor, state: State) -> Tensor:
        """Tokens (N, t) of hypotheses as the network may read them: without ids of strings that it has no row for."""
        return self._readable(tokens, self._known(tokens), state.background, state.states)
