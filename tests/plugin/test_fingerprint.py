"""Weights remember their prior: also averaged, also as the first checkpoints had it."""

import pytest
import torch
from tiny_world import World, build

from fairseq_llrnn.errors import PriorError


def test_an_average_of_checkpoints_remembers_its_prior(world: World) -> None:
    """As fairseq's average_checkpoints.py does it: sum up, then divide; whole numbers without a rest."""
    model = build(world.train_args()).model
    states = [{name: value.clone() for name, value in model.state_dict().items()} for _ in range(5)]
    average = states[0]
    for state in states[1:]:
        for name, value in state.items():
            average[name] += value
    for value in average.values():
        value.div_(5) if value.is_floating_point() else value.floor_divide_(5)
    model.load_state_dict(average)


def test_a_fingerprint_in_bytes_is_the_same(world: World) -> None:
    """As the first checkpoints had it."""
    model = build(world.train_args()).model
    state = model.state_dict()
    state["decoder.head.prior_fingerprint"] = state["decoder.head.prior_fingerprint"].to(torch.uint8)
    model.load_state_dict(state)
    state["decoder.head.prior_fingerprint"][0] += 1
    place = world.prior("prior")
    advice = (
        "to train from scratch, set another --save-dir; to use the checkpoint, pass the prior of its training with "
        "--prior"
    )
    with pytest.raises(PriorError, match=f"trained with another prior than {place} .*{advice}"):
        model.load_state_dict(state)
