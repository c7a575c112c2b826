"""A batch of nothing is refused in one line, beside a prior of every kind; a sentence without words is none."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hostile_priors import make_priors

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.prior.prior import Prior

SHAPES = [(0, 3), (2, 0), (0, 0)]
SAID = r"^LogLinearHead: expected at least one of {}, found \({}\); leave empty batches out \(an empty sentence is "


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> list[LogLinearHead]:
    priors = [Prior.load(place) for place in make_priors(tmp_path_factory.mktemp("priors")).values()]
    return [LogLinearHead(p, 4, embedding=FeatureInput(3), source_size=4 if p.source_symbols else None) for p in priors]


def source_of(head: LogLinearHead, many: int) -> dict[str, Any]:
    if head.source_size is None:
        return {}
    return {"source": torch.full((many, 3), 5), "source_states": torch.randn(many, 3, 4)}


def scores(head: LogLinearHead, hidden: torch.Tensor, tokens: torch.Tensor, **source: Any) -> torch.Tensor:
    batch = head.batch(hidden, head.bind(head.previous(tokens), source.get("source")), source.get("source_states"))
    return head.target_log_probs(batch, tokens)


ASKED: dict[str, Callable[..., object]] = {
    **{
        kind: lambda head, hidden, tokens, kind=kind, **source: head.loss(hidden, tokens, reduction=kind, **source)
        for kind in ("mean", "sum", "none")
    },
    "log_probs": lambda head, hidden, tokens, **source: head.log_probs(hidden, previous=tokens, **source),
    "target_log_probs": scores,
    "possible": lambda head, hidden, tokens, source=None, source_states=None: head.possible(tokens, source),
}


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("asked", ASKED)
def test_a_batch_without_positions(
    heads: list[LogLinearHead], asked: str, shape: tuple[int, int], is_training: bool
) -> None:
    for head in heads:
        head.train(is_training)
        hidden, tokens = torch.randn(*shape, 4), torch.full(shape, 5)
        said = SAID.format(r"tokens \(B, T\)", f"{shape[0]}, {shape[1]}")
        with pytest.raises(DataError, match=said):
            ASKED[asked](head, hidden, tokens, **source_of(head, shape[0]))


def test_a_search_without_hypotheses(heads: list[LogLinearHead]) -> None:
    said = SAID.format(r"hypotheses \(N,\)", "0,")
    for head in heads:
        head.eval()
        with pytest.raises(DataError, match=said):
            head.start(0, **source_of(head, 0))
        state, hidden = head.start(2, **source_of(head, 2)), torch.randn(0, 4)
        for ask in (lambda: head.top_k(hidden, state, 2), lambda: head.step(hidden, state)):  # noqa: B023
            with pytest.raises(DataError, match=said):
                ask()


def test_nothing_but_padding_has_a_loss_of_zero_and_an_empty_sentence_one(heads: list[LogLinearHead]) -> None:
    for head in heads:
        head.eval()
        assert head.encode([]).shape == (0, 0)
        padding, empty, source = torch.full((1, 2), head.pad), head.encode([""]), source_of(head, 1)
        hidden = torch.randn(1, 2, 4, requires_grad=True)
        loss = head.loss(hidden, padding, **source)
        loss.backward()
        assert loss.item() == 0.0 and hidden.grad is not None and not hidden.grad.any()
        if bool(head.possible(empty, source.get("source"))):
            assert head.loss(hidden[:, :1], empty, **source).item() > 0.0
