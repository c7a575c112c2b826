"""What the decoder promises beyond the commands of today: a search may begin with a prefix."""

import pytest
import torch
from fairseq.sequence_scorer import SequenceScorer
from tiny_world import World, assert_prefixes_agree, batch, randomised


def test_windows_are_read_some_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = randomised([*world.train_args(), "--context-window", "3"], double=True)
    decoder = setting.model.eval().decoder
    sample = batch(setting.task.dictionary, ["le chat voit la mer", "une pomme tient la tour"])
    tokens = sample["net_input"]["src_tokens"]
    whole, _ = decoder(tokens)
    monkeypatch.setattr("fairseq_llrnn.plugin.models.recurrent_models.WINDOWS", 5)
    with torch.no_grad():
        torch.testing.assert_close(decoder(tokens)[0], whole)


@pytest.mark.parametrize("options", [[], ["--cell", "gru"], ["--cell", "rnn"], ["--context-window", "3"]])
def test_the_first_step_of_a_search_may_read_a_whole_prefix(world: World, options: list[str]) -> None:
    setting = randomised([*world.train_args(), *options], double=True)
    assert_prefixes_agree(setting, ["le chat voit la mer", "une pomme tient la tour"], first=3)


def test_scores_of_an_ensemble_have_what_is_too_improbable_for_single_precision(world: World) -> None:
    """log p is about −150 nats, and exp(−104) is 0 in float32: fairseq-eval-lm would leave such a word out."""
    setting = randomised(world.train_args())
    head = setting.model.eval().decoder.head
    sample = batch(setting.task.dictionary, ["le chat voit la mer"])
    with torch.no_grad():
        head.output.bias[head.prior.output.features.index["TOPFORM:chat"]] -= 150.0
    scorer = SequenceScorer(setting.task.dictionary)
    (((one,),), ((two,),)) = (scorer.generate([setting.model] * many, sample) for many in (1, 2))
    assert one["positional_scores"][1] < -104
    torch.testing.assert_close(two["positional_scores"].float(), one["positional_scores"])
