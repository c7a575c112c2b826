"""--expert in models: a search equals the whole sequence, the loss is the sum over words, weights are learned.

And through fairseq's commands: train, resume, validate, translate; a checkpoint cannot name code.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from dynamic_prior import LINES
from evidence_world import PREFIXES, SENTENCES, EvidenceWorld
from evidence_world import batch as evidence_batch
from expert_models import options
from shell import Shell
from tiny_world import Setting, World, assert_prefixes_agree, batch, build, evaluated, open_prior, read_checkpoint
from translation_world import TranslationWorld, assert_found_scores_are_the_model_s, assert_steps_agree, pairs

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.prior.parts import EvidencePart


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
        column = output[1]["batch"].background.base.column_of(target)
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


@pytest.mark.parametrize("prior", ["prior", "lexical"])
@pytest.mark.parametrize("names", CASES.values(), ids=CASES)
def test_translation(translation: TranslationWorld, expert_file: Path, names: list[str], prior: str) -> None:
    arch = "llrnn_transformer" if names == ["Said"] else "llrnn_lstm"
    setting = evaluated([*translation.train_args(arch, prior), *options(expert_file, *names)], scale=0.3)
    sample = pairs(setting.task, LINES)
    assert_steps_agree(setting, sample)
    assert_the_loss_is_the_sum_over_words(setting, sample)
    assert_found_scores_are_the_model_s(setting, sample)


# with either, the loss and the search are alike
@pytest.mark.parametrize("said", ["--evidence-freely", "--evidence-once"])
@pytest.mark.parametrize("prior", ["static", "lexical"])
def test_translation_with_evidence(evidence: EvidenceWorld, expert_file: Path, prior: str, said: str) -> None:
    setting = evaluated([*evidence.train_args(prior=prior), said, *options(expert_file, "Mirror", "Said")], scale=0.3)
    sample = evidence_batch(setting.task, SENTENCES, PREFIXES)
    assert_steps_agree(setting, sample)
    assert_the_loss_is_the_sum_over_words(setting, sample)
    assert not SENTENCES[-1]  # an empty source has an empty translation, with certainty
    searched = evidence_batch(setting.task, SENTENCES[:-1], PREFIXES[:-1])
    assert_found_scores_are_the_model_s(setting, searched)
    assert_found_scores_are_the_model_s(setting, searched, sampling=True)


@pytest.mark.parametrize("sampled", [False, True])
def test_open_vocabulary(
    shell: Shell, world: World, translation: TranslationWorld, expert_file: Path, sampled: bool
) -> None:
    """Experts, or samples, beside classes of unknown words."""
    opened = open_prior(shell, world, translation.data, "open-experts")
    more = ["--sampled-classes", "100000"] if sampled else options(expert_file, "Mirror", "Said")
    setting = evaluated([*translation.train_args(prior=opened), *more], scale=0.3)
    sample = pairs(setting.task, ["le chat xyzzy voit", "la vache verte"])
    assert (sample["target"] >= len(setting.task.target_dictionary)).any()
    exact = setting.criterion(setting.model, sample)[0]
    if sampled:
        setting.model.decoder.train()
        torch.testing.assert_close(setting.criterion(setting.model.train(), sample)[0], exact)
        return
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


def test_an_expert_that_fails_names_its_sentence(translation: TranslationWorld, expert_file: Path) -> None:
    setting = build([*translation.train_args(), *options(expert_file, "Broken")])
    message = r"expert Broken, asked of the source '.+' .*KeyError: 'town' \(.*mine.py, line"
    with pytest.raises(DataError, match=message):
        setting.criterion(setting.model, pairs(setting.task, LINES))


def test_weights_of_other_experts_are_refused(translation: TranslationWorld, expert_file: Path) -> None:
    one = build([*translation.train_args(), *options(expert_file, "Mirror")]).model
    for names, message in (
        ([], r"trained with, which are 1, found 0; give those of its training, in their order, as --expert"),
        (["Mirror", "Said"], "trained with, which are 1, found 2"),
    ):
        other = build([*translation.train_args(), *(options(expert_file, *names) if names else [])]).model
        with pytest.raises(OptionError, match=message):
            other.load_state_dict(one.state_dict())
        if not names:
            with pytest.raises(OptionError, match="trained with, which are 0, found 1; leave it out"):
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
    assert "error: --expert: expected as many experts as the checkpoint was trained with, which are 2" in without.err


def test_a_checkpoint_s_expert_is_never_run(
    shell: Shell, translation: TranslationWorld, trained_with_expert: Path, tmp_path: Path
) -> None:
    marker, evil = tmp_path / "marker", tmp_path / "evil.py"
    evil.write_text(f"open({str(marker)!r}, 'w').close()\n", encoding="utf-8")
    state = read_checkpoint(trained_with_expert)
    state["cfg"]["task"]["expert"] = f"{evil}:Evil"
    path = tmp_path / "checkpoint.pt"
    torch.save(state, path)
    for command, args in {
        "fairseq-validate": [*translation.task_args(), "--path", path, "--max-tokens", 128],
        "fairseq-generate": [*translation.task_args(), "--path", path],
        "llrnn": ["score", "--path", path, translation.place / "test.tgt", "--source", translation.place / "test.src"],
    }.items():
        result = shell.run(command, *args, code=None)
        assert result.code != 0 and not marker.exists(), command


def test_an_expert_that_is_not_there_is_one_line(shell: Shell, translation: TranslationWorld) -> None:
    result = shell.run("fairseq-train", *translation.train_args(), "--expert", "nowhere.py:Mine", code=None)
    assert result.code == 1 and "Traceback" not in result.err
    assert "error: --expert nowhere.py:Mine: expected a file of Python code, found no nowhere.py" in result.err


# ---- sampled training -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["language model", "translation", "lexical", "evidence"])
def test_a_sample_of_all_classes_is_the_exact_loss_and_validation_is_exact(
    kind: str, world: World, translation: TranslationWorld, evidence: EvidenceWorld
) -> None:
    args = {
        "language model": world.train_args(),
        "translation": translation.train_args("llrnn_transformer"),
        "lexical": translation.train_args(prior="lexical"),
        "evidence": evidence.train_args(prior="lexical"),
    }[kind]
    losses, gradients = [], []
    for sampled in ("0", "100000", "5"):
        setting = evaluated([*args, "--sampled-classes", sampled], scale=0.3)
        if kind == "evidence":
            sample = evidence_batch(setting.task, SENTENCES, PREFIXES)
        else:
            sample = batch(setting.task.dictionary, LINES) if kind == "language model" else pairs(setting.task, LINES)
        setting.model.train()
        torch.manual_seed(1)
        loss, _, _ = setting.criterion(setting.model, sample)
        loss.backward()
        gradients.append({name: p.grad for name, p in setting.model.named_parameters()})
        setting.model.eval()
        losses.append((loss.detach(), setting.criterion(setting.model, sample)[0].detach()))
    (exact, valid), (whole, _), (some, also_valid) = losses
    torch.testing.assert_close(whole, exact, rtol=1e-5, atol=1e-4)
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(also_valid, valid)
    assert abs(float(some - exact)) > 1e-3


def test_sampled_training_learns(shell: Shell, world: World, tmp_path: Path) -> None:
    result = shell.run(
        "fairseq-train", *world.train_args(save_dir=tmp_path), "--sampled-classes", 12, "--max-epoch", 3
    )
    nats = [float(found) for found in re.findall(r'"valid_nats": "([\d.]+)"', result.out + result.err)]
    assert len(nats) == 3 and nats[-1] < nats[0] - 0.1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--sampled-classes", "-1"], r"--sampled-classes -1: expected 0 \(all\) or a number, e.g. 1000"),
        (["--sampled-classes", "5", "--label-smoothing", "0.1"], "not supported with --label-smoothing"),
    ],
)
def test_senseless_samples_are_refused(world: World, more: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build([*world.train_args(), *more])


def test_samples_do_not_go_with_experts(world: World, expert_file: Path) -> None:
    setting = build([*world.train_args(), "--sampled-classes", "5", *options(expert_file, "Said")])
    with pytest.raises(OptionError, match="--sampled-classes: not supported with --expert"):
        setting.criterion(setting.model.train(), batch(setting.task.dictionary, LINES))
