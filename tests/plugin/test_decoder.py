"""What the decoder promises beyond the commands of today: a search may begin with a prefix, weights may be averaged."""

import pytest
import torch
from tiny_world import World, batch, build, randomise

from fairseq_llrnn.errors import PriorError


@pytest.mark.parametrize("options", [[], ["--cell", "gru"], ["--context-window", "3"]])
def test_the_first_step_of_a_search_may_read_a_whole_prefix(world: World, options: list[str]) -> None:
    setting = build([*world.train_args(), *options], double=True)
    randomise(setting.model)
    decoder = setting.model.eval().decoder
    sample = batch(setting.task.dictionary, ["le chat voit la mer", "une pomme tient la tour"])
    tokens = sample["net_input"]["src_tokens"]
    whole, _ = decoder(tokens)
    state: dict = {}
    for end in (3, 4, 5, 6):
        step, extra = decoder(tokens[:, :end], incremental_state=state)
        assert step.shape[1] == 1
        torch.testing.assert_close(step[:, 0], whole[:, end - 1])


def test_an_average_of_checkpoints_remembers_its_prior(world: World) -> None:
    """As the host's average_checkpoints.py does it: sum up, then divide; whole numbers without a rest."""
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
    state["decoder.prior_fingerprint"] = state["decoder.prior_fingerprint"].to(torch.uint8)
    model.load_state_dict(state)
    state["decoder.prior_fingerprint"][0] += 1
    with pytest.raises(PriorError, match="trained with another prior than the one given"):
        model.load_state_dict(state)
