"""Tensors of a checkpoint that say to be larger than they are, or are something else, are refused in one line."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head.checks import check_fingerprint
from fairseq_llrnn.plugin.compat.checkpoint_errors import explain_load_errors
from fairseq_llrnn.plugin.compat.moved_folders import fingerprint_in

LARGE = torch.zeros(1).expand(2**40)


def load(path: Path, state: dict[str, Any]) -> Any:
    torch.save(state, path)
    return explain_load_errors(torch.load)(str(path), weights_only=True)


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({"model": {"a": LARGE}}, "tensors with all their numbers, found one of shape (1099511627776,) without them"),
        ({"model": {}, "optimizer": [{"state": (LARGE,)}]}, "tensors with all their numbers"),
        ({"model": {"a": torch.zeros(3, device="meta")}}, "tensors with all their numbers"),
        ({"model": {"a": torch.zeros(3).to_sparse()}}, "tensors with all their numbers"),
        ({"model": {3: torch.zeros(3)}}, "weights with names, found other keys"),
    ],
)
def test_tensors_without_their_numbers(tmp_path: Path, state: dict[str, Any], found: str) -> None:
    with pytest.raises(DataError, match=rf"a\.pt: refused: expected {re.escape(found)}.*; use one that fairseq saved"):
        load(tmp_path / "a.pt", state)


def test_ordinary_tensors_are_read(tmp_path: Path) -> None:
    shared = torch.arange(6.0)
    around: list[Any] = [shared]
    around.append(around)
    state = {"model": {"a": shared, "b": shared[:2], "c": shared.view(2, 3).T, "d": torch.zeros(0)}, "x": around}
    assert torch.equal(load(tmp_path / "a.pt", state)["model"]["c"], shared.view(2, 3).T)


@pytest.mark.parametrize("saved", ["text", 3, LARGE, torch.zeros(65), torch.zeros(4, 8), torch.tensor(1.0)])
def test_what_is_no_fingerprint(saved: object) -> None:
    message = "expected up to 64 numbers as the fingerprint of its prior, found .*; use a checkpoint that fairseq saved"
    with pytest.raises(DataError, match=f"^a.pt: {message}"):
        fingerprint_in({"model": {"decoder.head.prior_fingerprint": saved}}, "a.pt")
    with pytest.raises(DataError, match=f"^the checkpoint: {message}"):
        check_fingerprint(torch.zeros(32), saved, None)
