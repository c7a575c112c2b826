"""A network spells the unknown words of a translation model: the loss and both searches."""

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from shell import Shell
from tiny_world import World, open_prior, randomised
from translation_world import TranslationWorld, assert_steps_agree, pairs

LINES = ["le chat xyzzy voit", "une Zoé 1999 bien"]


@pytest.fixture(scope="module")
def spelled(shell: Shell, world: World, translation: TranslationWorld) -> str:
    return open_prior(shell, world, translation.data, "spelled", kind="neural")


@pytest.mark.parametrize(("arch", "sampling"), [("llrnn_lstm", True), ("llrnn_transformer", False)])
def test_unknown_words_are_spelled(arch: str, sampling: bool, translation: TranslationWorld, spelled: str) -> None:
    setting = randomised(translation.train_args(arch, spelled))
    decoder, task = setting.model.eval().decoder, setting.task
    assert decoder.head.open_words.speller is not None
    sample = pairs(task, LINES)
    assert_steps_agree(setting, sample)
    loss, _, _ = setting.criterion(setting.model, sample)
    loss.backward()
    assert all(parameter.grad is not None for parameter in decoder.head.open_words.speller.parameters())
    with torch.no_grad():  # unknown words are likely
        decoder.head.output.bias[task.prior.output.features.index["SPECIAL:<unk>"]] += 12.0
    generator = task.build_generator([setting.model], GenerationConfig(beam=3, max_len_b=5, sampling=sampling))
    found = task.inference_step(generator, [setting.model], sample)
    written = torch.cat([hypothesis["tokens"] for of_sentence in found for hypothesis in of_sentence])
    size = len(task.target_dictionary)
    assert bool((written >= size).any()) and not bool((written == task.target_dictionary.unk()).any())
