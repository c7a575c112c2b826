"""What the decoder promises beyond the commands of today: a search may begin with a prefix."""

import pytest
import torch
from tiny_world import World, batch, build, randomise


def test_windows_are_read_some_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = build([*world.train_args(), "--context-window", "3"], double=True)
    randomise(setting.model)
    decoder = setting.model.eval().decoder
    sample = batch(setting.task.dictionary, ["le chat voit la mer", "une pomme tient la tour"])
    tokens = sample["net_input"]["src_tokens"]
    whole, _ = decoder(tokens)
    monkeypatch.setattr("fairseq_llrnn.plugin.models.recurrent_decoders.WINDOWS", 5)
    with torch.no_grad():
        torch.testing.assert_close(decoder(tokens)[0], whole)


@pytest.mark.parametrize("options", [[], ["--cell", "gru"], ["--cell", "rnn"], ["--context-window", "3"]])
def test_the_first_step_of_a_search_may_read_a_whole_prefix(world: World, options: list[str]) -> None:
    setting = build([*world.train_args(), *options], double=True)
    randomise(setting.model)
    decoder = setting.model.eval().decoder
    sample = batch(setting.task.dictionary, ["le chat voit la mer", "une pomme tient la tour"])
    tokens = sample["net_input"]["src_tokens"]
    whole = decoder.head.word_log_probs(decoder(tokens)[1]["batch"])
    state: dict = {}
    for end in (3, 4, 5, 6):
        output = decoder(tokens[:, :end], incremental_state=state)
        found = decoder.get_normalized_probs(output, log_probs=True)
        torch.testing.assert_close(found, whole[:, end - 1 : end])
