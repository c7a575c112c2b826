"""The best classes of a tree by branch and bound are those of the full enumeration."""

from __future__ import annotations

import pytest
import torch
from small_trees import TreeCase, corrections_of

from fairseq_llrnn.output.normalisers import SlotScores


@pytest.mark.parametrize("k", [1, 3, 50])
@pytest.mark.parametrize("kind", ["shared", "dense", "corrections"])
@pytest.mark.parametrize("seed", range(12))
def test_best_classes_are_those_of_all(seed: int, kind: str, k: int) -> None:
    case = TreeCase.of(seed, ("free", "composed")[seed % 2], leaves=30)
    masses = corrections_of(case, seed) if kind == "corrections" else case.masses(1 if kind == "shared" else 7)
    if seed % 3 == 0:  # many ties
        for parameter in (*case.output.parameters(), *case.layer.parameters()):
            parameter.data.zero_()
        if kind != "corrections":
            masses = torch.where(masses.isneginf(), masses, 0.0)
    scores, of_slots = case.normal(7, 2), case.normal(7, 2)
    of_slots[0] = float("-inf")
    slots = None if seed % 4 == 0 else SlotScores(scores, of_slots)
    share = -case.normal(1 if seed % 2 else 7, 30 if slots is None else 32).abs()
    temperature = (1.0, 0.5, torch.linspace(0.5, 2.0, 7).double().unsqueeze(1))[seed % 3]
    tree = case.made(True)
    with torch.no_grad():
        everything = tree.class_log_probs(case.hidden, masses, slots, temperature)
        found, log_probs, classes = tree.best_classes(case.hidden, masses, share, k, slots, temperature)
    expected = (everything + share).topk(min(k, everything.size(1)), dim=1).values
    torch.testing.assert_close(found, expected)
    for row, (values, own, which) in enumerate(zip(found, log_probs, classes, strict=True)):
        real = values.isfinite()
        assert len(set(which[real].tolist())) == int(real.sum())
        torch.testing.assert_close(own[real], everything[row, which[real]])
        torch.testing.assert_close(values[real], (everything + share)[row, which[real]])
    some = case.classes(0 if slots is None else 2).unsqueeze(1).repeat(1, 3)
    some[:, 1] = 0
    of_some = tree.log_probs_of(case.hidden, some, masses, slots, temperature)
    torch.testing.assert_close(of_some, everything.gather(1, some))
