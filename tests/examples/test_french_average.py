"""Averaging checkpoints: the mean of the weights, and errors."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from fairseq_llrnn.errors import DataError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "french_morphology"))

from average import average  # noqa: E402


def save(path: Path, **weights: torch.Tensor) -> None:
    torch.save({"model": weights, "args": Namespace(a=1), "cfg": None}, path)


def test_mean_of_the_weights(tmp_path: Path) -> None:
    for i, value in enumerate((1.0, 2.0, 6.0)):
        weights = {"w": torch.full((2,), value), "n": torch.tensor([7], dtype=torch.uint8)}
        save(tmp_path / f"checkpoint_1_{100 * i}.pt", **weights)
    save(tmp_path / "checkpoint_best.pt", w=torch.zeros(2))
    assert average(tmp_path) == 3
    state = torch.load(tmp_path / "checkpoint_best.pt", weights_only=True)
    assert state["model"]["w"].tolist() == [3.0, 3.0] and state["model"]["w"].dtype == torch.float32
    assert state["model"]["n"].tolist() == [7]
    assert state["args"] == Namespace(a=1)


def test_nothing_to_average(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected checkpoint_EPOCH_UPDATE.pt files, found none"):
        average(tmp_path)


def test_different_models(tmp_path: Path) -> None:
    save(tmp_path / "checkpoint_1_1.pt", w=torch.zeros(2))
    save(tmp_path / "checkpoint_1_2.pt", v=torch.zeros(2))
    with pytest.raises(DataError, match="expected the weights of checkpoint_1_1.pt, found others"):
        average(tmp_path)
