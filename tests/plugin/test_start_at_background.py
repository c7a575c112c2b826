"""--start-at-background: before the first update the model is its background; and training can depart from there."""

import torch
from tiny_world import World, batch, build
from translation_world import TranslationWorld


def test_a_language_model_begins_as_its_background(world: World) -> None:
    setting = build([*world.train_args(), "--start-at-background"])
    model = setting.model.eval()
    sample = batch(setting.task.dictionary, ["le chat voit la mer", "une pomme"])
    log_probs = model.get_normalized_probs(model(**sample["net_input"]), log_probs=True)
    weights = torch.from_numpy(setting.task.prior.log_weights).to(log_probs).log_softmax(0)
    torch.testing.assert_close(log_probs, weights.expand_as(log_probs))
    loss, _, _ = setting.criterion(model.train(), sample)
    loss.backward()
    assert model.decoder.head.output.weight.grad.abs().sum() > 0 and model.decoder.head.output.bias.grad.abs().sum() > 0


def test_a_translation_model_begins_as_its_background(translation: TranslationWorld) -> None:
    setting = build([*translation.train_args("llrnn_lstm", "lexical"), "--start-at-background"])
    decoder, task = setting.model.eval().decoder, setting.task
    sources = task.source_dictionary.encode_line("the cat", add_if_not_exist=False).long().unsqueeze(0)
    previous = torch.full((1, 1), task.target_dictionary.eos())
    answer = setting.model(sources, torch.tensor([sources.size(1)]), previous)
    log_probs = setting.model.get_normalized_probs(answer, log_probs=True)[0, 0]
    background = decoder.head.background.bind(sources)
    torch.testing.assert_close(log_probs, background.view(background.start(1)).log_weights[0].log_softmax(0).float())
