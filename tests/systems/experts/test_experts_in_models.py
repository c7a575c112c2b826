"""--expert in models: a search equals the whole sequence, the loss is the sum over words, weights are learned.

And through fairseq's commands: train, resume, validate, translate; a checkpoint cannot name code.
"""

import re
from pathlib import Path
from typing import Any

import positions
import pytest
import torch
from automaton_prior import with_bigrams
from dynamic_prior import LINES
from evidence_world import PREFIXES, SENTENCES, EvidenceWorld
from evidence_world import batch as evidence_batch
from expert_models import options
from shell import Shell
from thinned_grids import one_in
from tiny_world import (
    Setting,
    World,
    assert_prefixes_agree,
    batch,
    build,
    evaluated,
    open_prior,
    randomised,
    read_checkpoint,
)
from translation_world import (
    TranslationWorld,
    assert_found_scores_are_the_model_s,
    assert_steps_agree,
    pairs,
    stock_args,
)

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.prior import Prior


def assert_the_loss_is_the_sum_over_words(setting: Setting, sample: dict[str, Any]) -> None:
    """And it trains all that experts have."""
    loss, _, _ = setting.criterion(setting.model, sample)
    with torch.no_grad():
        output = setting.model(**sample["net_input"])
        whole = setting.model.get_normalized_probs(output, log_probs=True)
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones(whole.shape[:2]), atol=1e-5, rtol=0)
    target = sample["target"]
    column = target
    if setting.task.prior.find(EvidencePart) is not None:
        column = positions.columns(output[1]["batch"], target)
    chosen = whole.gather(2, column.unsqueeze(2)).squeeze(2)
    expected = -chosen[target.ne(setting.task.target_dictionary.pad())].sum()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-4)
    loss.backward()
    for name, parameter in setting.model.decoder.head.experts.named_parameters():
        assert parameter.grad is not None and (parameter.grad.view(len(parameter), -1).abs().sum(1) > 0).all(), name


CASES = {
    "one": ["Mirror"],
    "by the prefix": ["Said"],
    "two": ["Mirror", "Said"],
}


@pytest.mark.parametrize(("names", "prior"), one_in(5, CASES.values(), ["prior", "lexical"]))
def test_translation(translation: TranslationWorld, expert_file: Path, names: list[str], prior: str) -> None:
    arch = "llrnn_transformer" if names == ["Said"] else "llrnn_lstm"
    setting = evaluated([*translation.train_args(arch, prior), *options(expert_file, *names)], scale=0.3)
    sample = pairs(setting.task, LINES)
    assert_steps_agree(setting, sample)
    assert_the_loss_is_the_sum_over_words(setting, sample)
    assert_found_scores_are_the_model_s(setting, sample)


@pytest.mark.parametrize("prior", ["static", "lexical"])
def test_translation_with_evidence(evidence: EvidenceWorld, expert_file: Path, prior: str) -> None:
    """Searches do not count strings, as in the loss."""
    more = ["--evidence-freely", *options(expert_file, "Mirror", "Said")]
    setting = evaluated([*evidence.train_args(prior=prior), *more], scale=0.3)
    sample = evidence_batch(setting.task, SENTENCES, PREFIXES)
    assert_steps_agree(setting, sample)
    assert_the_loss_is_the_sum_over_words(setting, sample)
    assert not SENTENCES[-1]  # an empty source has an empty translation, with certainty
    searched = evidence_batch(setting.task, SENTENCES[:-1], PREFIXES[:-1])
    assert_found_scores_are_the_model_s(setting, searched)
    assert_found_scores_are_the_model_s(setting, searched, sampling=True)


def test_open_vocabulary(shell: Shell, world: World, translation: TranslationWorld, expert_file: Path) -> None:
    """Experts beside classes of unknown words."""
    opened = open_prior(shell, world, translation.data, "open-experts")
    setting = evaluated([*translation.train_args(prior=opened), *options(expert_file, "Mirror", "Said")], scale=0.3)
    sample = pairs(setting.task, ["le chat xyzzy voit", "la vache verte"])
    assert (sample["target"] >= len(setting.task.target_dictionary)).any()
    assert_steps_agree(setting, sample)
    known_sample = pairs(setting.task, LINES)
    assert_the_loss_is_the_sum_over_words(setting, known_sample)
    assert_found_scores_are_the_model_s(setting, known_sample)


def test_language_model(world: World, expert_file: Path) -> None:
    setting = evaluated([*world.train_args(), *options(expert_file, "Said", "Mirror")], scale=0.3)
    sample = batch(setting.task.dictionary, LINES)
    assert_the_loss_is_the_sum_over_words(setting, sample)
    assert_prefixes_agree(setting, LINES, first=2)


def test_the_norm_of_the_adaptor_counts_the_experts(translation: TranslationWorld, expert_file: Path) -> None:
    more = [*options(expert_file, "Mirror", "Said"), "--adaptor-penalty", "0.1"]
    setting = evaluated([*translation.train_args(), *more], scale=0.3)
    decoder, sample = setting.model.decoder, pairs(setting.task, LINES)
    with torch.no_grad():
        hidden, extra = setting.model(**sample["net_input"])
        plain = hidden[..., : decoder.head.output.weight.size(1)]
        adaptor = torch.cat([decoder.head.output.adaptor(plain), decoder.head.experts.weights(plain)], dim=2)
    for p in (1.0, 2.0):
        found = decoder.head.adaptor_norm(extra["batch"], p)
        torch.testing.assert_close(found, torch.linalg.vector_norm(adaptor, p, -1))
    setting.criterion(setting.model, sample)[0].backward()


def test_weights_of_other_experts_are_refused(translation: TranslationWorld, expert_file: Path) -> None:
    one = build([*translation.train_args(), *options(expert_file, "Mirror")]).model
    for names, message in (
        ([], r"trained with 1 experts, found 0; give the same ones in the same order, as --expert"),
        (["Mirror", "Said"], "trained with 1 experts, found 2"),
    ):
        other = build([*translation.train_args(), *(options(expert_file, *names) if names else [])]).model
        with pytest.raises(OptionError, match=message):
            other.load_state_dict(one.state_dict())
        if not names:
            with pytest.raises(OptionError, match="trained with 0 experts, found 1; leave it out"):
                one.load_state_dict(other.state_dict())


# ---- fairseq's commands --------------------------------------------------------------------------------------------


def test_training_goes_on_and_every_command_takes_the_expert(
    shell: Shell, translation: TranslationWorld, expert_file: Path, trained_with_expert: Path
) -> None:
    weight = read_checkpoint(trained_with_expert)["model"]["decoder.head.experts.weight"]
    assert len(weight) == 2 and (weight.abs().sum(1) > 0).all()
    task = translation.task_args()
    expert = options(expert_file, "Mirror", "Said")
    found = shell.run("fairseq-generate", *task, *expert, "--path", trained_with_expert, "--beam", 2)
    assert len(re.findall(r"^H-\d+", found.out, re.MULTILINE)) == 16
    typed = shell.run(
        "fairseq-interactive", *task, *expert, "--path", trained_with_expert, stdin="el tahc tiov al rem\n"
    )
    assert "\nH-0\t" in typed.out
    shell.run("fairseq-validate", *task, *expert, "--path", trained_with_expert, "--max-tokens", 128)
    without = shell.run("fairseq-generate", *task, "--path", trained_with_expert, code=None)
    assert without.code != 0
    assert "error: --expert: the checkpoint was trained with 2 experts" in without.err


def test_a_checkpoint_s_expert_is_never_run(
    shell: Shell, translation: TranslationWorld, trained: Path, trained_with_expert: Path, tmp_path: Path
) -> None:
    """Not where its weights need one, nor where they need none, and all is well."""
    marker, evil, path, lm = (tmp_path / name for name in ("marker", "evil.py", "checkpoint.pt", "lm.pt"))
    evil.write_text(f"open({str(marker)!r}, 'w').close()\n", encoding="utf-8")
    for hostile, source in ((path, trained_with_expert), (lm, trained / "checkpoint_last.pt")):
        state = read_checkpoint(source)
        state["cfg"]["task"]["expert"] = f"{evil}:Evil"
        torch.save(state, hostile)
    for command, args, good in (
        ("fairseq-validate", [*translation.task_args(), "--path", path, "--max-tokens", 128], False),
        ("fairseq-generate", [*translation.task_args(), "--path", path], False),
        ("llrnn", ["explain", "--path", path, "--source", "el tahc", "le chat"], False),
        ("llrnn", ["explain", "--path", lm, "le chat"], True),
    ):
        result = shell.run(command, *args, code=None)
        assert (result.code == 0) == good and not marker.exists(), command
        assert good or "was trained with 2 experts, found 0; give the same ones" in result.err


# ---- what they do not go with ---------------------------------------------------------------------------------------


def test_samples_do_not_go_with_experts(world: World, expert_file: Path) -> None:
    setting = build([*world.train_args(), "--sampled-classes", "5", *options(expert_file, "Said")])
    with pytest.raises(OptionError, match="--sampled-classes: not supported with --expert"):
        setting.criterion.set_normaliser(setting.model.decoder.head)


def test_trees_and_temperatures_do_not_go_with_experts(world: World, expert_file: Path) -> None:
    args = [*world.train_args(), *options(expert_file, "Said")]
    with pytest.raises(OptionError, match="--output-tree: not supported with --expert; leave one of them out"):
        build([*args, "--output-tree", "huffman"])
    learned = "--learn-background-temperature"
    with pytest.raises(OptionError, match=f"{learned}: not supported with --expert; leave one of them out"):
        build([*args, learned], with_bigrams(Prior.load(world.prior("prior")), {"le": {"chat": 0.5}}))


def test_models_of_others_have_none(translation: TranslationWorld, expert_file: Path) -> None:
    args = [*translation.task_args(), *stock_args(translation.data)[8:], *options(expert_file, "Said")]
    with pytest.raises(OptionError, match="--expert: expected a log-linear model, found another one; use --arch llrnn"):
        build(args)


# What a criterion asks, beside its definition over the scores of all classes, exceptions of experts among them
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
    classes = extra["batch"].view.classes(words.flatten()).view_as(words).unsqueeze(2)
    assert (classes >= decoder.head.background.num_classes).any(), "some targets are exceptions"
    sizes = torch.ones(scores.size(-1), dtype=torch.float64)
    sizes[: len(decoder.head.class_sizes)] = decoder.head.class_sizes.double()
    q = sizes * ~mass.isneginf()
    q = q / q.sum(-1, keepdim=True)
    expected = (q * scores).sum(-1) - scores.gather(2, classes).squeeze(2)
    torch.testing.assert_close(decoder.head.smoothing_gain(extra["batch"], target), expected)

    share = extra["batch"].view.locate(words.flatten())[1].view_as(words)
    log_p = (scores + mass).log_softmax(-1).gather(2, classes).squeeze(2) + share
    real = (words == target) & target.ne(dictionary.pad())
    torch.testing.assert_close(decoder.head.target_log_probs(extra["batch"], target)[real], log_p[real])
    torch.testing.assert_close(
        decoder.head.target_log_probs(extra["batch"], words)[target != words], log_p[target != words]
    )
    setting.criterion(setting.model, sample)[0].backward()
