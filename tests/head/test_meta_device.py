"""Heads on the meta device, hooks, and what a move that loses the contents of tensors does to them."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
from hostile_priors import make_priors
from meta_heads import WAYS, H, assigned, check_equal, make, on_meta

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.output.sampled import Sampled
from fairseq_llrnn.prior.prior import Prior

KINDS = [
    "static", "separate", "softmax", "two unigrams", "ngram", "automaton", "cache", "combined", "product", "lexical",
    "lexical between lemmas", "ngram and lexical", "evidence", "evidence and lexical", "open", "neural", "pieces",
    "evidence of pieces", "languages",
]  # fmt: skip


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Prior]:
    return {name: Prior.load(place) for name, place in make_priors(tmp_path_factory.mktemp("priors")).items()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_is_all_that_is_needed(priors: dict[str, Prior], kind: str, way: str) -> None:
    """Buffers that no checkpoint holds are made again of the prior: bit for bit those of a head on the CPU."""
    head = make(priors[kind])
    check_equal(WAYS[way](head.state_dict(), partial(make, priors[kind], 2)), head)


@pytest.mark.parametrize("way", WAYS)
def test_tied_weights_stay_one_tensor(priors: dict[str, Prior], way: str) -> None:
    head = make(priors["static"], tied=True)
    found = WAYS[way](head.state_dict(), partial(make, priors["static"], 2, tied=True))
    assert found.embedding.weight is found.output.weight
    check_equal(found, head)


def test_every_kind_of_prior_is_tried(priors: dict[str, Prior]) -> None:
    assert set(KINDS) == set(priors)


def test_sampled_classes_too(priors: dict[str, Prior]) -> None:
    head = make(priors["static"], normaliser=Sampled(3))
    found = assigned(make(priors["static"], 2, normaliser=Sampled(3)).to("meta"), head.state_dict())
    assert torch.equal(found.normaliser.sampler.inclusion, head.normaliser.sampler.inclusion)


def test_another_prior_is_still_refused(priors: dict[str, Prior]) -> None:
    with pytest.raises(PriorError, match="trained with another prior"):
        assigned(on_meta(partial(make, priors["static"])), make(priors["ngram"]).state_dict())


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
