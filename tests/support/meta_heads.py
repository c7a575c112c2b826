"""Heads on the meta device, and the ways from there to one with weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.prior.prior import Prior

H = 4

State = dict[str, Tensor]
New = Callable[[], LogLinearHead]


def make(prior: Prior, seed: int = 1, tied: bool = False, **options: Any) -> LogLinearHead:
    torch.manual_seed(seed)
    source_size = H if prior.source_symbols else None
    return LogLinearHead(prior, H, embedding=FeatureInput(H, tied), source_size=source_size, **options)


def on_meta(new: New) -> LogLinearHead:
    with torch.device("meta"):
        head = new()
    assert head.output.weight.is_meta and head.embedding.weight.is_meta
    return head


def emptied(head: LogLinearHead, state: State) -> LogLinearHead:
    head.to_empty(device="cpu").load_state_dict(state)
    return head


def assigned(head: LogLinearHead, state: State) -> LogLinearHead:
    head.load_state_dict(state, assign=True)
    return head


def reset(head: LogLinearHead) -> LogLinearHead:
    head.to_empty(device="cpu")
    torch.manual_seed(1)
    head.reset_parameters()
    return head


def in_a_model(head: LogLinearHead, state: State) -> LogLinearHead:
    model = torch.nn.Sequential(head).to_empty(device="cpu")
    model.load_state_dict({f"0.{name}": value for name, value in state.items()})
    return head


WAYS: dict[str, Callable[[State, New], LogLinearHead]] = {
    "made on meta, to_empty": lambda state, new: emptied(on_meta(new), state),
    "made on meta, assign": lambda state, new: assigned(on_meta(new), state),
    "moved to meta, to_empty": lambda state, new: emptied(new().to("meta"), state),
    "moved to meta, assign": lambda state, new: assigned(new().to("meta"), state),
    "to_empty where it is": lambda state, new: emptied(new(), state),
    "assign where it is": lambda state, new: assigned(new(), state),
    "made on meta, reset": lambda _, new: reset(on_meta(new)),
    "in a model": lambda state, new: in_a_model(on_meta(new), state),
}


def check_equal(found: LogLinearHead, head: LogLinearHead) -> None:
    """Check weights, buffers and log-probabilities, bit for bit."""
    pairs = [*zip(found.named_buffers(), head.named_buffers(), strict=True)]
    pairs += zip(found.named_parameters(), head.named_parameters(), strict=True)
    for (name, one), (other_name, other) in pairs:
        assert name == other_name and one.dtype == other.dtype and torch.equal(one, other), name
    targets = torch.randint(4, head.num_words, (2, 3), generator=torch.Generator().manual_seed(3))
    source: dict[str, Any] = {}
    if head.source_size is not None:
        source = {"source": torch.full((2, 3), 5), "source_states": torch.randn(2, 3, H)}
    hidden = torch.randn(2, 3, H)
    values = [each.eval().log_probs(hidden, previous=each.previous(targets), **source) for each in (found, head)]
    assert torch.equal(*values)
