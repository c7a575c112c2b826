"""--tree-sparse-gradients through fairseq: equal to dense gradients, clipped, resumed, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from dynamic_prior import LINES
from fairseq.optim import FairseqOptimizer, build_optimizer
from omegaconf import OmegaConf
from same_training import JOINED, assert_same_training, resumed_as_whole
from shell import Shell
from tiny_world import World, batch, build, randomised
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from llrnn_research.output_trees.plugin.sparse_gradients import check_optimizer

TREE = ("--output-tree", "huffman", "--tree-arity", "3")
SPARSE = "--tree-sparse-gradients"
WEIGHTS = ("decoder.head.output.weight", "decoder.head.embedding.weight")


def optimizer_of(name: str, params: list[torch.nn.Parameter], **options: Any) -> FairseqOptimizer:
    return build_optimizer(OmegaConf.create({"_name": name, "lr": [0.1], **options}), params)


def gradients(world: World, *more: str) -> dict[str, Tensor]:
    setting = randomised([*world.train_args(), *TREE, *more], double=True)
    setting.criterion(setting.model.train(), batch(setting.task.dictionary, LINES))[0].backward()
    return {name: weight.grad for name, weight in setting.model.named_parameters() if weight.grad is not None}


def test_gradients_are_those_of_dense_tensors(world: World) -> None:
    dense, sparse = gradients(world), gradients(world, SPARSE)
    assert dense.keys() == sparse.keys()
    for name, grad in sparse.items():
        assert grad.is_sparse == (name in WEIGHTS), name
        torch.testing.assert_close(grad.to_dense() if grad.is_sparse else grad, dense[name], rtol=1e-10, atol=1e-12)


def test_tied_features(world: World) -> None:
    """Output and input add to one gradient."""
    tied = ("--tie-features", "--decoder-embed-dim", "8", "--decoder-hidden-size", "8")
    dense, sparse = gradients(world, *tied), gradients(world, *tied, SPARSE)
    found = sparse[WEIGHTS[0]]
    assert found.is_sparse
    torch.testing.assert_close(found.to_dense(), dense[WEIGHTS[0]], rtol=1e-10, atol=1e-12)


def parameters() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((6, 3), (4,), (5, 2))
    return [torch.nn.Parameter(torch.randn(*shape, generator=generator)) for shape in shapes]


def some_gradients(step: int, rows: Callable[[int], list[int]]) -> list[Tensor]:
    """That of the first is not zero in some rows alone, one of which is said in two parts."""
    generator = torch.Generator().manual_seed(step)
    which = rows(step)
    values = torch.randn(len(which), 3, generator=generator)
    first = torch.sparse_coo_tensor(torch.tensor([which]), values, (6, 3), check_invariants=True)
    others = [torch.randn(*shape, generator=generator) for shape in ((4,), (5, 2))]
    return [first, *others]


@pytest.mark.parametrize("max_norm", [0.0, 0.5])
@pytest.mark.parametrize(
    ("name", "other", "rows"),
    [
        ("llrnn_adagrad", "adagrad", lambda step: [step % 6, 3, 3]),
        # a row without a gradient moves on with adam: the same where all rows always have one
        ("llrnn_adam", "adam", lambda step: [0, 1, 2, 3, 4, 5, step % 6]),
    ],
)
def test_updates_are_those_of_dense_gradients(
    name: str, other: str, rows: Callable[[int], list[int]], max_norm: float
) -> None:
    sparse, dense = parameters(), parameters()
    options = {} if name == "llrnn_adagrad" else {"adam_betas": "(0.8, 0.95)", "adam_eps": 1e-6}
    mine = optimizer_of(name, sparse, **options)
    theirs = optimizer_of(other, dense, weight_decay=0.0, tpu=False, **options)
    for step in range(1, 6):
        for a, b, grad in zip(sparse, dense, some_gradients(step, rows), strict=True):
            a.grad, b.grad = grad, grad.to_dense() if grad.is_sparse else grad.clone()
        for optimizer in (mine, theirs):
            optimizer.multiply_grads(torch.tensor(0.5))
        norms = [optimizer.clip_grad_norm(max_norm) for optimizer in (mine, theirs)]
        torch.testing.assert_close(*norms)
        for optimizer in (mine, theirs):
            optimizer.step()
        for a, b in zip(sparse, dense, strict=True):
            torch.testing.assert_close(a.data, b.data, rtol=1e-5, atol=1e-6)
    assert mine.state_dict()["state"][0].keys() == theirs.state_dict()["state"][0].keys()


def test_adam_of_a_row_is_torchs_sparse_adam() -> None:
    (mine, *_), (theirs, *_) = parameters(), parameters()
    optimizer, expected = optimizer_of("llrnn_adam", [mine]), torch.optim.SparseAdam([theirs], lr=0.1)
    for step in range(1, 8):
        mine.grad, theirs.grad = (some_gradients(step, lambda step: [step % 6, 3, 3])[0] for _ in range(2))
        before = mine.detach().clone()
        optimizer.step()
        expected.step()
        torch.testing.assert_close(mine.data, theirs.data)
        untouched = [row for row in range(6) if row not in (step % 6, 3)]
        assert torch.equal(mine.data[untouched], before[untouched])


@pytest.mark.parametrize("betas", ["0.9", "(0.9,)", "(0.9, 'a')", "(0.9, 1)", "(0.9, -0.1)"])
def test_betas_are_two_numbers(betas: str) -> None:
    with pytest.raises(OptionError, match="--adam-betas .*expected two numbers of at least 0 and below 1"):
        optimizer_of("llrnn_adam", parameters(), adam_betas=betas)


def test_rows_of_the_input_are_composed_for_a_search_alone(world: World) -> None:
    """All of them for every batch of a validation would cost more than the words that it reads."""
    sparse, dense = (build([*world.train_args(), *TREE, *more]).model.decoder for more in ([SPARSE], []))
    with torch.no_grad():
        assert sparse.input_rows(None) is None and dense.input_rows(None) is None
        assert sparse.input_rows({}) is not None and dense.input_rows({}) is not None


@pytest.mark.parametrize("name", ["llrnn_adagrad", pytest.param("llrnn_adam", marks=pytest.mark.slow)])
def test_the_command(shell: Shell, world: World, tmp_path: Path, name: str) -> None:
    """Trained with a learned tree, and resumed as if never stopped."""
    tree = ("--output-tree", "learned", "--tree-arity", 4, "--optimizer", name, "--update-freq", 2, "--clip-norm", 0.5)
    resumed_as_whole(shell, partial(world.train_args, "prior"), tmp_path, *tree, SPARSE)
    model = ("--path", tmp_path / "whole" / "checkpoint_last.pt")
    assert "bits per word" in shell.run("llrnn", "score", *model, stdin="le chat voit la mer\n").out


def test_another_optimizer_is_refused(shell: Shell, world: World, tmp_path: Path) -> None:
    args = [*world.train_args(save_dir=tmp_path), *TREE, SPARSE, "--max-epoch", 1]
    refused = shell.run("fairseq-train", *args, code=None)
    assert refused.code != 0 and "Traceback" not in refused.err
    assert f"{SPARSE}: needs --optimizer llrnn_adagrad or llrnn_adam, without --fp16" in refused.err
    assert "found adam" in refused.err


@pytest.mark.parametrize("name", [pytest.param("llrnn_adagrad", marks=pytest.mark.slow), "llrnn_adam"])
def test_two_processes_equal_one_that_accumulates(shell: Shell, world: World, tmp_path: Path, name: str) -> None:
    """Up to float error; where the number of batches is odd, one process has none of its own at the end."""
    train = [*TREE, SPARSE, "--optimizer", name, "--clip-norm", 0.5, "--max-tokens", 70, "--max-epoch", 2]
    alone, both = tmp_path / "alone", tmp_path / "both"
    shell.run("fairseq-train", *world.train_args(save_dir=alone), *train, "--update-freq", 2)
    shell.run("fairseq-train", *world.train_args(save_dir=both), *train, *JOINED, processes=2)
    assert_same_training(both / "checkpoint_last.pt", alone / "checkpoint_last.pt", exact=False)


def test_gradients_of_several_processes(shell: Shell) -> None:
    """The mean of dense tensors: sparse ones with other rows, without, with zeros, beside none, beside dense ones."""
    found = [json.loads(line) for line in shell.run("two_gradients", processes=2).out.splitlines()]
    assert [one["rows"] for one in found] == [[1, 3, 4], [4], [0], [0], None, None]
    assert all(one["same"] for one in found)


def test_other_ways_to_join_processes_are_refused() -> None:
    optimizer, model = optimizer_of("llrnn_adagrad", parameters()), torch.nn.Linear(1, 1)
    check_optimizer(optimizer, model)
    with (
        mock.patch("torch.distributed.is_initialized", lambda: True),
        mock.patch("torch.distributed.get_world_size", lambda: 2),
        pytest.raises(OptionError, match=f"{SPARSE}: with 2 processes it needs --ddp-backend legacy_ddp"),
    ):
        check_optimizer(optimizer, model)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([SPARSE], f"{SPARSE}: needs --output-tree; add it"),
        ([*TREE, "--tree-rows", "composed", SPARSE], f"{SPARSE}: expected .* found --tree-rows composed"),
    ],
)
def test_what_is_refused(world: World, more: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build([*world.train_args(), *more])
