"""What a criterion asks, beside its definition over the scores of all classes, exceptions of experts among them."""

from pathlib import Path

import positions
import torch
from expert_models import options
from shell import Shell
from tiny_world import World, open_prior, randomised
from translation_world import TranslationWorld, pairs


def test_terms_with_experts_and_strings_outside_the_dictionary(
    shell: Shell, world: World, translation: TranslationWorld, expert_file: Path
) -> None:
    opened = open_prior(shell, world, translation.data, "open-terms")
    expert = [*options(expert_file, "Mirror"), "--label-smoothing", "0.1"]
    setting = randomised([*translation.train_args(prior=opened), *expert], double=True, scale=0.3)
    decoder, dictionary = setting.model.eval().decoder, setting.task.target_dictionary
    sample = pairs(setting.task, ["le chat xyzzy voit", "la vache verte"])
    target = sample["target"]
    words = target.masked_fill(target >= len(dictionary), dictionary.unk())
    assert (words != target).any()

    _, extra = setting.model(**sample["net_input"])
    scores = positions.class_scores(extra["batch"])  # shape: (B, T, S + J)
    mass = extra["batch"].log_mass.expand_as(scores)
    classes = positions.classes(extra["batch"].background, words).unsqueeze(2)
    assert (classes >= decoder.head.background.num_classes).any(), "some targets are exceptions"
    sizes = torch.ones(scores.size(-1), dtype=torch.float64)
    sizes[: len(decoder.head.log_sizes)] = decoder.head.log_sizes.exp()
    q = sizes * ~mass.isneginf()
    q = q / q.sum(-1, keepdim=True)
    expected = (q * scores).sum(-1) - scores.gather(2, classes).squeeze(2)
    torch.testing.assert_close(decoder.head.smoothing_gain(extra["batch"], target), expected)

    share = extra["batch"].background.log_share(extra["batch"].states, words.flatten()).view_as(words)
    log_p = (scores + mass).log_softmax(-1).gather(2, classes).squeeze(2) + share
    real = (words == target) & target.ne(dictionary.pad())
    torch.testing.assert_close(decoder.head.target_log_probs(extra["batch"], target)[real], log_p[real])
    torch.testing.assert_close(
        decoder.head.target_log_probs(extra["batch"], words)[target != words], log_p[target != words]
    )
    setting.criterion(setting.model, sample)[0].backward()
