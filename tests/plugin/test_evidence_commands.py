"""Evidence through the commands of fairseq: training, BLEU in validation, search, ensembles, resuming."""

import re
from pathlib import Path

import pytest
from evidence_world import UNKNOWN, EvidenceWorld
from fairseq.dataclass.configs import GenerationConfig
from same_training import assert_same_training
from shell import Result, Shell
from tiny_world import EVERY_SENTENCE, build

from fairseq_llrnn.errors import OptionError

EVAL_BLEU = ["--eval-bleu", "--eval-bleu-args", '{"beam": 2, "max_len_b": 12}', "--eval-bleu-detok", "space"]
ONCE = ["--max-epoch", 3, "--validate-interval", 3]
LOST = "unknown words of the {} sources are stored as <unk> in the binary data set"


def scores(result: Result) -> dict[int, float]:
    return {number: found[0][0] for number, found in result.hypotheses().items()}


def offered(source: str) -> set[str]:
    """The unknown strings of a source."""
    return {word for word in source.split() if word in UNKNOWN}


# ---- training -------------------------------------------------------------------------------------------------------


def test_a_run_that_is_resumed_is_the_run_that_never_stopped(
    shell: Shell, evidence: EvidenceWorld, tmp_path: Path
) -> None:
    """Inside an epoch, after one, and whoever loads the data: unknown words are drawn and invented the same."""
    runs = {
        "whole": [["--max-epoch", 2]],
        "parts": [["--max-update", 2], ["--max-epoch", 1], ["--max-epoch", 2, "--num-workers", 2]],
    }
    shares = ["--dropout", 0.2, "--evidence-dropout", 0.6, "--invented-evidence", 0.5, "--max-tokens", 512]
    for name, parts in runs.items():
        arguments = evidence.train_args(prior="lexical", save_dir=tmp_path / name)
        for options in parts:
            shell.run("fairseq-train", *arguments, *shares, "--disable-validation", *options)
    assert_same_training(tmp_path / "whole" / "checkpoint_last.pt", tmp_path / "parts" / "checkpoint_last.pt")


@pytest.mark.parametrize("arch, prior", [("llrnn_transformer", "lexical")])
def test_training_on_text_and_validation(
    shell: Shell, evidence: EvidenceWorld, tmp_path: Path, arch: str, prior: str
) -> None:
    arguments = [*evidence.train_args(arch, prior, tmp_path, raw=True), "--lr", 0.005]
    training = shell.run("fairseq-train", *arguments, *ONCE, "--label-smoothing", 0.1, *EVAL_BLEU)
    losses = [row["train_loss"] for row in training.json_lines("train")]
    assert losses == sorted(losses, reverse=True) and losses[0] - losses[-1] > 0.3
    valid = training.json_lines("valid")[-1]
    assert valid["valid_bleu"] > 0 and valid["valid_nats_evidence"] < 3
    assert "WARNING" not in training.out
    common = [*evidence.task_args(prior, raw=True), "--path", tmp_path / "checkpoint_last.pt", "--num-workers", 0]
    again = shell.run("fairseq-validate", *common, "--max-tokens", 200, "--log-format", "json", *EVERY_SENTENCE)
    assert again.json_lines("valid")[-1]["valid_nll_loss"] == pytest.approx(valid["valid_nll_loss"], abs=2e-3)


# ---- the real strings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lstm", "transformer"])
def test_translations_hold_the_real_strings(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path], name: str
) -> None:
    sources, targets = evidence.text("test", "src"), evidence.text("test", "tgt")
    found = evidence.generate(shell, evidence_models[name], "--scoring", "sacrebleu")
    assert "WARNING" not in found.out and "BLEU" in found.out
    assert found.printed("S") == {i: [line] for i, line in enumerate(sources)}
    assert found.printed("T") == {i: [line] for i, line in enumerate(targets)}
    written = {i: words for i, [(_, words)] in found.hypotheses().items()}
    assert not any("<unk>" in words for words in written.values())
    used = [set(words.split()) & set(UNKNOWN) for i, words in sorted(written.items())]
    assert all(words <= offered(source) for words, source in zip(used, sources, strict=True))
    assert len(set().union(*used)) >= 3
    typed = evidence.interactive(shell, evidence_models[name], sources, "--buffer-size", 7, "--batch-size", 3)
    assert typed.printed("S") == found.printed("S")
    assert scores(typed) == pytest.approx(scores(found), abs=1e-3)
    assert {i: one[0][1] for i, one in typed.hypotheses().items()} == written


def test_binary_data_lose_unknown_words_and_say_so_once(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path]
) -> None:
    known = {line.split()[0] for line in (evidence.data / "dict.src.txt").read_text(encoding="utf-8").splitlines()}
    lost = sum(word not in known for line in evidence.text("test", "src") for word in line.split())
    found = evidence.generate(shell, evidence_models["lstm"], raw=False)
    assert found.out.count(f"evidence: {lost} {LOST.format('test')}") == 1
    assert sum(words.count("<unk>") for [words] in found.printed("S").values()) == lost
    truncated = evidence.generate(shell, evidence_models["lstm"], "--truncate-source", "--max-source-positions", 5)
    assert LOST.format("test") not in truncated.out  # of text, nothing is lost
    assert all(len(words.split()) <= 4 for [words] in truncated.printed("S").values())


# ---- what is refused ------------------------------------------------------------------------------------------------

REFUSED = {
    "no room": (["--max-slots", 0], "--max-slots 0: expected a number of at least 1"),
    "a share": (["--evidence-dropout", 1.5], "--evidence-dropout 1.5: expected a share from 0 to below 1"),
    "all": (["--evidence-dropout", 1], "--evidence-dropout 1.0: expected a share from 0 to below 1"),
    "invented": (["--invented-evidence", -0.1], "--invented-evidence -0.1: expected a share from 0 to below 1"),
    "a criterion of fairseq": (["--criterion", "cross_entropy"], "--criterion cross_entropy: expected log_linear"),
    "its smoothing": (["--criterion", "label_smoothed_cross_entropy"], "log_linear --label-smoothing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_training_refuses(evidence: EvidenceWorld, name: str) -> None:
    options, message = REFUSED[name]
    with pytest.raises(OptionError, match=re.escape(message)):
        build([*evidence.train_args(), *options])


def test_what_a_search_refuses(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path], tmp_path: Path
) -> None:
    ours, stock = evidence_models["lstm"], evidence_models["stock"]
    shell.run("fairseq-train", *evidence.train_args(prior="numbers", save_dir=tmp_path), "--max-update", 1)
    other = tmp_path / "checkpoint_last.pt"
    cases: list[tuple[object, list[object], str]] = [
        (f"{ours}:{other}", [], f"the checkpoint was trained with another prior than {evidence.data / 'static'} "),
        (stock, [], "--path: expected a model that was trained with the prior, found none with its strings of"),
    ]
    for path, options, message in cases:
        result = evidence.generate(shell, path, *options, code=None)
        assert result.code != 0 and message in result.err and "Traceback" not in result.err


def test_a_language_model_of_fairseq_is_refused(evidence: EvidenceWorld) -> None:
    setting = build(evidence.train_args())
    more = {"lm_model": setting.model, "lm_weight": 1.0}
    with pytest.raises(OptionError, match="^--lm-path: not supported with a prior that has evidence"):
        setting.task.build_generator([setting.model], GenerationConfig(beam=2), extra_gen_cls_kwargs=more)
