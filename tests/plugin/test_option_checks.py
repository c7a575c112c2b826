"""fairseq's own options: what would end in a trace, or never, is one line before fairseq looks at it."""

import sys
from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path

import pytest
from shell import Shell, assert_says
from tiny_world import World, build
from translation_world import TranslationWorld

from fairseq_llrnn.errors import OptionError

VALUES = [
    *[(option, value) for option in ("--beam", "--nbest", "--max-tokens", "--batch-size") for value in ("0", "-1")],
    # which fairseq's parser leaves as text
    *[(f"--{name}-valid", value) for name in ("max-tokens", "batch-size") for value in ("0", "-1", "1.5", "some")],
    ("--required-batch-size-multiple", "0"),
    *[(f"--{name}", "-1") for name in ("max-len-a", "max-len-b", "min-len")],
    *[(f"--{name}", "nan") for name in ("lenpen", "unkpen", "temperature", "clip-norm")],
    *[(f"--{name}", "1e300") for name in ("lenpen", "unkpen", "temperature")],
    *[("--context-window", value) for value in ("-1", "999999")],
    *[("--temperature", value) for value in ("0", "-1")],
    ("--lr", "-1"),
    ("--update-freq", "0"),
    *[("--model-overrides", value) for value in ("{", "5")],
    *[("--path", value) for value in (".", "none.pt")],
    ("--lm-path", "none.pt"),
    *[("--input", value) for value in (".", "none.txt")],
    ("--restore-file", "none.pt"),
    ("--finetune-from-model", "none.pt"),
    ("--continue-once", "none.pt"),
    ("--save-dir", f"{__file__}/checkpoints"),
]
HELD_OUT = "run fairseq-preprocess with --validpref and sentences that are in neither the training nor the test text"
TOGETHER = [
    ("--path", [], "expected a checkpoint, found none"),
    ("--sampling-topk 3", ["--sampling-topk", "3"], "it needs --sampling"),
]


def parser(training: bool) -> ArgumentParser:
    """fairseq's own, without a command line that it would read."""
    from fairseq import options

    from fairseq_llrnn.plugin.compat.option_checks import check_when_parsed

    made = ArgumentParser()
    options.gen_parser_from_dataclass(made, options.CommonConfig())
    options.add_dataset_args(made, train=training)
    options.add_checkpoint_args(made)
    if training:
        options.add_optimization_args(made)
    else:
        options.add_generation_args(made)
        options.add_interactive_args(made)
        options.add_eval_lm_args(made)
    check_when_parsed(made)
    return made


TRAINING = ["--max-tokens", "9"]
SEARCH = ["--path", __file__]


@pytest.mark.parametrize(("option", "value"), VALUES)
def test_values(option: str, value: str) -> None:
    """By whichever of the two parsers knows the option."""
    found = 0
    for training, needed in ((True, TRAINING), (False, SEARCH)):
        made = parser(training)
        if option in made._option_string_actions:
            found += 1
            with pytest.raises(OptionError, match=f"^{option}: expected .*, found "):
                made.parse_args([*needed, f"{option}={value}"])
    assert found


@pytest.mark.parametrize("option", ["--path", "--input", "--lm-path"])
def test_a_folder_in_the_place_of_a_file_is_said(option: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=f"^{option}: expected .*, found '{tmp_path}', a folder$"):
        parser(False).parse_args([*SEARCH, option, str(tmp_path)])


@pytest.mark.parametrize(("begin", "options", "message"), TOGETHER)
def test_options_that_do_not_go_together(begin: str, options: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=f"^{begin}: .*{message}"):
        parser(False).parse_args([*(SEARCH if options else []), *options])


def test_numbers_that_the_parser_leaves_as_text() -> None:
    found = parser(True).parse_args([*TRAINING, "--max-tokens-valid", "100", "--batch-size-valid", "7"])
    assert (found.max_tokens_valid, found.batch_size_valid) == ("100", "7")


@pytest.mark.parametrize("options", [["--checkpoint-suffix=-s"], ["--checkpoint-shard-count", "2"]])
def test_names_that_fairseq_completes_are_not_looked_for(options: list[str]) -> None:
    """It opens model-s.pt, or model-s_part0.pt."""
    assert parser(False).parse_args(["--path", "model.pt", *options]).path == "model.pt"


def test_precisions_that_the_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq asks for the number of the GPU, or for a TPU, in a trace."""
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-train"])
    fp16 = [*TRAINING, "--fp16", "--cpu"]
    with pytest.raises(OptionError, match="^--fp16 on a CPU needs --fp16-no-flatten-grads; add it$"):
        parser(True).parse_args(fp16)
    for more in ("--fp16-no-flatten-grads", "--memory-efficient-fp16"):
        parser(True).parse_args([*fp16, more])
    for option in ("--bf16", "--memory-efficient-bf16"):
        with pytest.raises(OptionError, match="^--bf16: fairseq needs a TPU .*; use --bf16-products"):
            parser(True).parse_args([*TRAINING, option])
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    parser(True).parse_args([*TRAINING, "--fp16"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--valid-subset", "vaild"], ["expected the data set 'vaild', found test", "; did you mean 'valid'?"]),
        (["--valid-subset", "tset"], ["expected the data set 'tset', found test", HELD_OUT]),
        (["--train-subset", "trian"], ["expected the data set 'trian'", "; correct --train-subset, or run fairseq"]),
    ],
)
def test_through_fairseq(options: list[str], words: list[str], shell: Shell, world: World) -> None:
    assert_says(shell.run("fairseq-train", *world.train_args(), *options, "--max-update", 1, code=None), *words)


def test_without_validation_data(shell: Shell, world: World, tmp_path: Path) -> None:
    """Neither the training nor the test text may choose the checkpoint."""
    for file in world.data.iterdir():
        if file.name.startswith(("dict", "train.", "test.")):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    arguments = [tmp_path, "--prior", world.prior("prior"), "--cpu", "--no-save", "--max-update", 1]
    result = shell.run("llrnn", "train", *arguments, code=2)
    assert result.err.splitlines()[-1] == (
        f"llrnn train: error: {tmp_path}: expected the data set 'valid', found test, train; {HELD_OUT}, or add "
        "--disable-validation"
    )
    shell.run("llrnn", "train", *arguments, "--disable-validation")


def test_a_beam_wider_than_the_dictionary(world: World) -> None:
    from fairseq.dataclass.configs import GenerationConfig

    setting = build(world.train_args())
    with pytest.raises(OptionError, match=r"--beam 1000000: expected at most the [\d,]+ words of the dictionary"):
        setting.task.build_generator([setting.model], GenerationConfig(beam=1_000_000))


@pytest.mark.parametrize(
    ("arch", "options", "aligns"),
    [
        ("llrnn_lstm", ["--attention", "none"], False),
        ("llrnn_transformer", ["--no-cross-attention"], False),
        ("llrnn_lstm", [], True),
        ("llrnn_transformer", [], True),
    ],
)
def test_alignments_need_attention(arch: str, options: list[str], aligns: bool, translation: TranslationWorld) -> None:
    from fairseq.dataclass.configs import GenerationConfig

    setting = build([*translation.train_args(arch), *options])
    expected = nullcontext() if aligns else pytest.raises(OptionError, match="^--print-alignment needs a model with")
    with expected:
        setting.task.build_generator([setting.model], GenerationConfig(print_alignment="soft"))


@pytest.mark.parametrize(
    "options",
    ["--max-slots 3", "--evidence-freely", "--evidence-dropout 0.5", "--invented-evidence 0.5"],
)
def test_options_of_evidence_that_there_is_none_of(options: str, translation: TranslationWorld) -> None:
    """In training; what a checkpoint has recorded, no other command minds."""
    task = build([*translation.train_args(), *options.split()]).task
    task.load_dataset("valid")
    with pytest.raises(OptionError, match=f"^{options}: it needs a prior with evidence .*; remove it"):
        task.load_dataset("train", combine=True)


def test_a_norm_without_a_penalty(world: World) -> None:
    norm = [*world.train_args(), "--adaptor-norm", "1"]
    with pytest.raises(OptionError, match="^--adaptor-norm 1.0: it needs --adaptor-penalty; add that"):
        build(norm)
    build([*norm, "--adaptor-penalty", "0.1"])
