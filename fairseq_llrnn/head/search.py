"""Methods of LogLinearHead for searches: the states of hypotheses, and the distributions of their next tokens.

Sizes: N hypotheses, t tokens, L source length, H hidden width, E encoder width. A step is a batch (output/records.py)
of one position per hypothesis, with the states as an argument.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from torch import Tensor

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.backgrounds.states import JointStates, distinct_runs, select
from fairseq_llrnn.errors import DataError, check_least
from fairseq_llrnn.functional import outside_autocast, to_autocast
from fairseq_llrnn.head.checks import check_rows, check_source_ids, check_token_ids
from fairseq_llrnn.head.inputs import InputEmbedding
from fairseq_llrnn.output.class_source import Head
from fairseq_llrnn.output.records import Batch, Rows, State


class SearchedHead(Head, Protocol):
    """The attributes of a head that its search uses."""

    embedding: InputEmbedding | None

    def bound_background(self, source: Tensor | None = None) -> BoundBackground: ...

    def for_background(self, tokens: Tensor) -> Tensor: ...

    def step(self, hidden: Tensor, state: State) -> Batch: ...

    def _rows(self, background: BoundBackground, source_states: Tensor | None) -> Rows: ...

    def _scored(self, *args: Any, **kwargs: Any) -> Batch: ...


def start(
    head: SearchedHead,
    batch_size: int,
    *,
    source: Tensor | None = None,
    source_states: Tensor | None = None,
) -> State:
    """Return the state of N = `batch_size` empty hypotheses.

    Args:
        source: (N, L); equal neighbours, as in a beam search, are processed once. source_states: (N, L, E).

    Raises:
        DataError: there are no hypotheses, or `source` or `source_states` does not have one row for each.
    """
    given = {"source": source, "source_states": source_states}
    check_rows((batch_size,), "hypotheses (N,)", "hypotheses", **given)
    if source is not None and head.has_source_strings:
        check_source_ids(head.prior, source)
    sentence, sources = None, source
    if source is not None:
        of_source = [source] if source_states is None else [source, source_states]
        distinct, sentence = distinct_runs(JointStates(of_source))
        sources = distinct.parts[0]
        if source_states is not None:
            source_states = distinct.parts[1]
    background = head.bound_background(sources)
    begin = background.start(batch_size if sentence is None else len(sources))  # type: ignore[arg-type]
    states = begin if sentence is None else select(begin, sentence)
    return State(background, states, head._rows(background, source_states))


def advance(head: SearchedHead, state: State, tokens: Tensor) -> State:
    """Return the state after every hypothesis is extended by its token (N,), or by several (N, t).

    Raises:
        DataError: `tokens` does not have one row per hypothesis, or has an invalid token id (checked on a CPU only,
            because a GPU would have to synchronise).
    """
    _check_others("advance", tokens, state)
    if tokens.device.type == "cpu":
        check_token_ids(head, tokens=tokens)
    for token in [tokens] if tokens.dim() == 1 else tokens.unbind(1):
        states = state.background.advance(state.states, head.for_background(token))
        width = head.hidden_size + sum([source.num_columns for source in head.sources])
        rows = state.rows if state.rows.width == width else state.rows.rebuild()
        state = replace(state, states=states, rows=rows, length=state.length + 1)
    return state


def step(head: SearchedHead, hidden: Tensor, state: State) -> Batch:
    """Return the distribution of the next token, as a batch. hidden: (N, H).

    Raises:
        DataError: there are no hypotheses, or `hidden` does not have one row for each.
    """
    check_rows(hidden.shape[:1], "hypotheses (N,)", "hypotheses")
    _check_others("step", hidden, state)
    hidden = to_autocast(hidden)
    with outside_autocast(hidden):
        view = state.background.view(state.states, hidden, state.remaining)
        return head._scored(hidden.unsqueeze(1), view, state.rows)


def _check_others(name: str, rows: Tensor, state: State) -> None:
    """Raise DataError if the rows do not match the hypotheses."""
    if len(rows) != len(state.states):
        raise DataError(
            f"{name}: expected a row for each of the {len(state.states)} hypotheses of the state, found {len(rows)}; "
            "start with head.start(N), and call state.select(rows) when a search reorders or repeats hypotheses"
        )


def top_k(head: SearchedHead, hidden: Tensor, state: State, k: int, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return the k most probable next tokens, exactly: hidden (N, H) -> log p in nats and tokens, (N, k), best first.

    Args:
        temperature: divides aᵀφ; the background is not tempered.

    Raises:
        OptionError: k below 1, or a temperature out of range. DataError: hidden states of another shape.
    """
    check_least("k", k, 1)
    if hidden.dim() != 2 or hidden.size(1) != head.hidden_size:
        raise DataError(
            f"top_k: expected the hidden state of each hypothesis, (N, {head.hidden_size}), found "
            f"{tuple(hidden.shape)}; of (B, T, H) pass one position, hidden[:, -1]"
        )
    return head.step(hidden, state).tempered(temperature).top_k(k)


def to_input_ids(head: SearchedHead, tokens: Tensor, state: State) -> Tensor:
    """Replace ids of strings without an input row: tokens (N, t) of hypotheses -> (N, t), for the network."""
    read = state.background.to_input_ids(head.for_background(tokens), state.states)
    return read if head.embedding is None else head.embedding.to_input_ids(tokens, read)
