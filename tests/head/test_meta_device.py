"""Heads on the meta device, hooks, and what a move that loses the contents of tensors does to them."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hostile_priors import make_priors
from torch import Tensor

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.output.sampled import Sampled
from fairseq_llrnn.prior.prior import Prior

KINDS = [
    "static", "separate", "softmax", "two unigrams", "ngram", "automaton", "cache", "combined", "product", "lexical",
    "lexical between lemmas", "ngram and lexical", "evidence", "evidence and lexical", "open", "neural", "pieces",
    "evidence of pieces", "languages",
]  # fmt: skip
H = 4


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Prior]:
    return {name: Prior.load(place) for name, place in make_priors(tmp_path_factory.mktemp("priors")).items()}


def make(prior: Prior, seed: int = 1, **options: Any) -> LogLinearHead:
    torch.manual_seed(seed)
    return LogLinearHead(
        prior, H, embedding=FeatureInput(H), source_size=H if prior.source_symbols else None, **options
    )


def on_meta(prior: Prior, **options: Any) -> LogLinearHead:
    with torch.device("meta"):
        head = make(prior, seed=2, **options)
    assert head.output.weight.is_meta and head.embedding.weight.is_meta
    return head


def emptied(head: LogLinearHead, state: dict[str, Tensor]) -> LogLinearHead:
    head.to_empty(device="cpu").load_state_dict(state)
    return head


def assigned(head: LogLinearHead, state: dict[str, Tensor]) -> LogLinearHead:
    head.load_state_dict(state, assign=True)
    return head


def reset(head: LogLinearHead, state: dict[str, Tensor]) -> LogLinearHead:
    head.to_empty(device="cpu")
    torch.manual_seed(1)
    head.reset_parameters()
    return head


WAYS: dict[str, Callable[[Prior, LogLinearHead], LogLinearHead]] = {
    "made on meta, to_empty": lambda prior, head: emptied(on_meta(prior), head.state_dict()),
    "made on meta, assign": lambda prior, head: assigned(on_meta(prior), head.state_dict()),
    "moved to meta, to_empty": lambda prior, head: emptied(make(prior, 2).to("meta"), head.state_dict()),
    "moved to meta, assign": lambda prior, head: assigned(make(prior, 2).to("meta"), head.state_dict()),
    "to_empty where it is": lambda prior, head: emptied(make(prior, 2), head.state_dict()),
    "made on meta, reset": lambda prior, head: reset(on_meta(prior), head.state_dict()),
    "in a model": lambda prior, head: emptied(
        torch.nn.Sequential(on_meta(prior)), {f"0.{name}": value for name, value in head.state_dict().items()}
    )[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_is_all_that_is_needed(priors: dict[str, Prior], kind: str, way: str) -> None:
    """Buffers that no checkpoint holds are made again of the prior: bit for bit those of a head on the CPU."""
    head = make(priors[kind]).eval()
    targets = torch.randint(4, head.num_words, (2, 3), generator=torch.Generator().manual_seed(3))
    source: dict[str, Any] = {}
    if head.source_size is not None:
        source = {"source": torch.full((2, 3), 5), "source_states": torch.randn(2, 3, H)}
    hidden = torch.randn(2, 3, H)
    found = WAYS[way](priors[kind], head).eval()
    for (name, one), (other_name, other) in zip(found.named_buffers(), head.named_buffers(), strict=True):
        assert name == other_name and one.dtype == other.dtype and torch.equal(one, other), name
    values = [each.log_probs(hidden, previous=each.previous(targets), **source) for each in (found, head)]
    assert torch.equal(*values)


def test_every_kind_of_prior_is_tried(priors: dict[str, Prior]) -> None:
    assert set(KINDS) == set(priors)


def test_sampled_classes_too(priors: dict[str, Prior]) -> None:
    head = make(priors["static"], normaliser=Sampled(3))
    found = assigned(make(priors["static"], 2, normaliser=Sampled(3)).to("meta"), head.state_dict())
    assert torch.equal(found.normaliser.sampler.inclusion, head.normaliser.sampler.inclusion)


def test_another_prior_is_still_refused(priors: dict[str, Prior]) -> None:
    with pytest.raises(PriorError, match="trained with another prior"):
        assigned(on_meta(priors["static"]), make(priors["ngram"]).state_dict())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_moves_make_nothing_again(priors: dict[str, Prior], dtype: torch.dtype, monkeypatch: Any) -> None:
    """torch's random generator stays where it was, too."""
    head = make(priors["combined"])
    monkeypatch.setattr(LogLinearHead, "rebuild_buffers", lambda head: pytest.fail("made again"))
    state = torch.get_rng_state()
    moved = copy.deepcopy(head).to(dtype).to("cpu").share_memory()
    assert torch.equal(torch.get_rng_state(), state) and moved.output.weight.dtype == dtype


def test_a_loss_that_is_called_by_either_name_runs_hooks(priors: dict[str, Prior]) -> None:
    head, calls = make(priors["static"]), list[str]()
    head.register_forward_pre_hook(lambda *_: calls.append("before"))
    head.register_forward_hook(lambda *_: calls.append("after"))
    head.register_full_backward_hook(lambda *_: calls.append("backward"))
    hidden, targets = torch.randn(1, 3, H, requires_grad=True), torch.tensor([[4, 5, 2]])
    assert torch.equal(head(hidden, targets), head.loss(hidden, targets))
    head(hidden, targets, label_smoothing=0.1).backward()
    assert calls == ["before", "after"] * 3 + ["backward"]
