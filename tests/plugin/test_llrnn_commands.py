"""`llrnn train`, `validate`, `eval-lm`, `generate`, `interactive`: fairseq's commands without what one forgets.

Beside each stands the bare command of fairseq that has to give the same.
"""

import json
import logging
import math
import re
import signal
from pathlib import Path

import pytest
import torch
from shell import Result, Shell
from small_corpus import Llrnn
from tiny_world import EVERY_SENTENCE, MODEL, USER_DIR, World, read_checkpoint
from translation_world import SIZES, TranslationWorld

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.commands import added

SMALL = [*MODEL[2:], "--cpu", "--num-workers", "0", "--seed", "1"]
TRAINING = ["--optimizer", "adam", "--lr", "0.01", "--clip-norm", "1.0", "--max-tokens", "128"]
BREAKING = ["--sample-break-mode", "eos", "--tokens-per-sample", "64"]
SEARCH = ["--beam", "3", "--max-len-b", "8", "--cpu"]


def lines(result: Result, *kinds: str) -> list[str]:
    """The lines S-…, H-…, P-… that a search printed."""
    return [line for line in result.out.splitlines() if line.startswith(kinds or ("S-", "T-", "H-", "D-", "P-"))]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(folder / "checkpoint_last.pt")["model"]


def same(one: Path, other: Path) -> bool:
    return all(torch.equal(value, weights(other)[name]) for name, value in weights(one).items())


def fails(result: Result, *words: str) -> None:
    """With one line on stderr that has these words."""
    assert result.code == 2
    assert len(result.err.splitlines()) == 1, result.err[-2000:]
    for word in words:
        assert word in result.err


@pytest.fixture(scope="module")
def model(shell: Shell, world: World) -> Path:
    """A language model, whose prior is not the one in its data folder."""
    place = world.place / "of-llrnn-train"
    shell.run(
        "llrnn", "train", world.data, "--prior", world.prior("separate"), *SMALL, *TRAINING, *BREAKING, "--max-epoch",
        2, "--save-dir", place,
    )  # fmt: skip
    return place / "checkpoint_best.pt"


@pytest.fixture(scope="module")
def translator(shell: Shell, translation: TranslationWorld) -> Path:
    place = translation.place / "of-llrnn-train"
    shell.run(
        "llrnn", "train", translation.data, *SIZES["llrnn_lstm"], *SMALL[-5:], *TRAINING, "--max-epoch", 2,
        "--save-dir", place,
    )  # fmt: skip
    return place / "checkpoint_best.pt"


# ---- the same results -----------------------------------------------------------------------------------------------


def told(result: Result) -> list[str]:
    """What is printed but for the line that names the prior, which stands there once, and shares of unknown words."""
    every = [line for line in result.out.splitlines() if " are outside the dictionary" not in line]
    rest = [line for line in every if not line.startswith("prior llrnn:")]
    assert len(rest) == len(every) - 1, every
    return rest


def test_a_language_model(shell: Shell, world: World, model: Path, tmp_path: Path) -> None:
    """Trained, measured and searched as by hand; the checkpoint says the prior and how it reads text."""
    task = world.task_args("separate")
    shell.run(
        "fairseq-train", *task, "--arch", "llrnn_lm", *SMALL, *TRAINING, *BREAKING, *EVERY_SENTENCE, "--max-epoch", 2,
        "--criterion", "log_linear", "--no-epoch-checkpoints", "--save-dir", tmp_path,
    )  # fmt: skip
    assert same(model.parent, tmp_path)

    bare = shell.run("fairseq-eval-lm", *task, *BREAKING, "--path", model, "--gen-subset", "valid")
    ours = shell.run("llrnn", "eval-lm", world.data, "--path", model, "--gen-subset", "valid", "--cpu")
    loss = re.search(r"Loss \(base 2\): .*", bare.out)
    assert loss is not None
    evaluated, result, of_words, per_character = told(ours)
    assert evaluated.startswith("Evaluated ") and result == loss[0]
    assert of_words.startswith("seen words: ") and per_character.startswith("Bits per character: ")
    assert ours.err == ""

    common = ["--path", model, *SEARCH, "--prefix-size", "2", "--gen-subset", "test1"]
    bare = shell.run("fairseq-generate", *task, *BREAKING, *EVERY_SENTENCE, *common)
    ours = shell.run("llrnn", "generate", world.data, *common)
    assert lines(ours) == lines(bare) and len(lines(ours, "H-")) == 8
    prior, share, written = ours.err.splitlines()
    assert prior.startswith("prior llrnn:")
    assert re.fullmatch(rf"0 of the [\d,]+ tokens of {world.data}/test1 are outside the dictionary", share)
    assert re.fullmatch(r"0 of the [\d,]+ generated words are <unk> \(0\.0%\)", written)

    bare = shell.run("fairseq-interactive", *task, "--path", model, *SEARCH, stdin="le chat\nla\n")
    ours = shell.run("llrnn", "interactive", world.data, "--path", model, *SEARCH, stdin="le chat\nla\n")
    assert lines(ours) == lines(bare) and len(lines(ours, "H-")) == 2
    assert [line for line in ours.out.splitlines() if not line.startswith("W-")] == lines(ours)

    bare = shell.run("fairseq-validate", *task, *EVERY_SENTENCE, "--path", model, "--max-tokens", 128)
    ours = shell.run("llrnn", "validate", world.data, "--path", model, "--cpu")
    found = re.fullmatch(r"valid: loss (\S+), .*, ppl (\S+), .*nats_NOUN \S+.*", told(ours)[0])
    assert found is not None
    assert f"| loss {found[1]} |" in bare.out and f"| ppl {found[2]} |" in bare.out


def test_a_translator(shell: Shell, translation: TranslationWorld, translator: Path, tmp_path: Path) -> None:
    task = translation.task_args()
    shell.run(
        "fairseq-train", *task, "--arch", "llrnn_lstm", *SIZES["llrnn_lstm"], *SMALL[-5:], *TRAINING, *EVERY_SENTENCE,
        "--criterion", "log_linear", "--max-epoch", 2, "--no-epoch-checkpoints", "--save-dir", tmp_path,
    )  # fmt: skip
    assert same(translator.parent, tmp_path)
    common = ["--path", translator, *SEARCH]
    bare = shell.run("fairseq-generate", *task, *EVERY_SENTENCE, *common)
    ours = shell.run("llrnn", "generate", translation.data, *common)
    assert lines(ours) == lines(bare) and len(lines(ours, "H-")) == 16
    assert ours.out.splitlines()[-1].startswith("Generate test with beam=3: BLEU")
    bare = shell.run("fairseq-interactive", *task, *common, stdin="el tahc\n")
    ours = shell.run("llrnn", "interactive", translation.data, *common, stdin="el tahc\n")
    assert lines(ours) == lines(bare) and len(lines(ours, "H-")) == 1
    assert told(shell.run("llrnn", "validate", *common[:2], translation.data, "--cpu"))[0].startswith("valid: loss ")


# ---- what training prints -------------------------------------------------------------------------------------------


def test_training_prints_a_line_an_epoch_and_what_to_type_next(shell: Shell, world: World, tmp_path: Path) -> None:
    place = tmp_path / "a folder"
    done = shell.run("llrnn", "train", world.data, *SMALL, "--max-epoch", 2, "--save-dir", place)
    opening, *epochs, best, valid, checkpoint, after = told(done)
    assert opening == (
        f"options added before yours: --user-dir={USER_DIR} --required-batch-size-multiple=1 "
        "--task=llrnn_language_modeling --arch llrnn_lm --sample-break-mode eos --tokens-per-sample 512 --criterion "
        "log_linear --optimizer adam --lr 0.002 --clip-norm 1.0 --max-tokens 2048 --patience 3 --no-epoch-"
        "checkpoints"
    )
    for number, line in enumerate(epochs, start=1):
        assert re.fullmatch(
            rf"epoch {number}: train loss [\d.]+, valid loss [\d.]+, perplexity [\d.]+ \(best so far\), \d+ s", line
        )
    assert len(epochs) == 2
    assert best == "best epoch  2 of 2"
    assert re.fullmatch(r"valid       loss [\d.]+, perplexity [\d.]+ \(a loss is in bits\)", valid)
    assert checkpoint == f"checkpoint  {place}/checkpoint_best.pt"
    command = f"llrnn eval-lm {world.data} --path '{place}/checkpoint_best.pt' --gen-subset test"
    assert after == f"next        {command}"
    assert done.err == ""

    again = told(shell.run("llrnn", "train", world.data, *SMALL, "--max-epoch", 2, "--save-dir", place))
    restart = "to start from scratch, use another --save-dir"
    assert again[1] == f"resumes from {place}/checkpoint_last.pt, update 2; {restart}"
    assert again[2].startswith("done        the training had already ended")

    worse = [*SMALL, "--max-epoch", 4, "--save-dir", place, "--lr", 0.3, "--reset-optimizer", "--reset-lr-scheduler"]
    worse = told(shell.run("llrnn", "train", world.data, *worse))
    assert re.search(r"perplexity \S+ \(best ", worse[2])


def test_several_validations_an_epoch_and_several_texts(shell: Shell, world: World) -> None:
    done = shell.run(
        "llrnn", "train", world.data, *SMALL, "--max-epoch", 1, "--no-save", "--batch-size", 32, "--log-interval", 2,
        "--validate-interval-updates", 2, "--valid-subset", "valid,test",
    )  # fmt: skip
    _, batch, other, again, valid, another, whole, best, numbers = told(done)
    assert re.fullmatch(r"epoch 1: batch 2 of 4, loss \S+, perplexity \S+", batch) and "batch 4 of 4" in again
    assert other.startswith("epoch 1: test loss ") and another.startswith("epoch 1: test loss ")
    assert re.fullmatch(r"epoch 1: valid loss \S+, perplexity \S+ \(best so far\)", valid)
    assert re.match(r"epoch 1: train loss \S+, valid loss \S+, perplexity ", whole)
    assert best == "best epoch  1 of 1" and numbers.startswith("valid       loss ")


def test_the_best_epoch_is_that_of_checkpoint_best(tmp_path: Path) -> None:
    """Of validations within an epoch, fairseq looks at those alone after which it saves."""
    from fairseq_llrnn.plugin.command_lines import Report

    report = Report(tmp_path, "loss", "", "")

    def says(name: str, message: str, file: str = "progress_bar.py") -> None:
        report.line(logging.makeLogRecord({"name": name, "filename": file}), message)

    def validates(epoch: int, loss: float, best: float) -> None:
        text = f"epoch {epoch:03} | valid on 'valid' subset | loss {loss} | ppl 9 | num_updates 7 | best_loss {best}"
        says("valid", text)

    def saves(epoch: int) -> None:
        says("fairseq.checkpoint_utils", f"Saved checkpoint a.pt (epoch {epoch} @ 7 updates, score 1)", "utils.py")

    validates(1, 4.5, 4.5)
    assert report.best is not None and report.best[1]["loss"] == "4.5", "with --no-save"
    losses = ((1, 4.5, 5.0, 5.0), (2, 4.0, 6.0, 5.0), (3, 4.9, 4.8, 4.8), (4, 4.7, 4.9, 4.8))
    for epoch, within, at_its_end, best in losses:
        validates(epoch, within, min(within, best))
        validates(epoch, at_its_end, best)
        saves(epoch)
        assert report.best[1]["loss"] == str(best)
    assert report.best[0] == 3


@pytest.mark.parametrize(
    ("losses", "says", "best"),
    [
        (["6.5", "6.1"], ["best so far", "best so far"], 2),
        (["6.5", "6.5", "6.9"], ["best so far", "same as in epoch 1", "best 6.5 in epoch 2"], 2),
        (["nan", "6.5"], ["not finite", "best so far"], 2),
        (["6.5", "inf"], ["best so far", "not finite"], 1),
        (["inf", "nan"], ["not finite", "not finite"], None),
        (["120720"], ["not finite"], None),  # whose perplexity is infinite
    ],
)
def test_the_best_validation_is_finite_and_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], losses: list[str], says: list[str], best: int | None
) -> None:
    """Equal losses are saved again by fairseq, and count as no progress for --patience."""
    from fairseq_llrnn.plugin.command_lines import Report

    report = Report(tmp_path, "loss", "", "")
    printed = []
    for epoch, loss in enumerate(losses, start=1):
        finite = [x for x in map(float, losses[:epoch]) if x == x]
        perplexity = "inf" if float(loss) > 1024 else loss
        for name, message in (
            ("valid", f"epoch {epoch} | valid on 'valid' subset | loss {loss} | ppl {perplexity} "
             f"| best_loss {min(finite, default=math.nan):g}"),
            ("train", f"epoch {epoch} | loss 7"),
        ):  # fmt: skip
            printed.append(report.line(logging.makeLogRecord({"name": name, "filename": "progress_bar.py"}), message))
    found = [
        re.fullmatch(r"epoch \d: train .*, valid loss \S+, perplexity \S+ \((.*)\), \d+ s", p) for p in printed if p
    ]
    assert [match and match[1] for match in found] == says
    status, (out, err) = report.end(), capsys.readouterr()
    if best is None:
        assert (status, out) == (1, "")
        text = f"valid loss {losses[-1]}, perplexity {'inf' if losses[-1] == '120720' else losses[-1]}"
        assert err == (
            f"llrnn train: error: no validation loss is finite ({text}): the training diverges; use a smaller --lr "
            "and another --save-dir, because the same one resumes from these weights\n"
        )
    else:
        assert (status, err) == (0, "") and out.startswith(f"best epoch  {best} of {len(losses)}\n")


@pytest.mark.parametrize(("losses", "status"), [(["nan"], 1), (["7", "inf"], 1), (["inf", "7"], 0), (["7"], 0)])
def test_a_training_without_validation_that_diverges(
    losses: list[str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fairseq_llrnn.plugin.command_lines import Report

    report = Report(tmp_path, "loss", "", "")
    for epoch, loss in enumerate(losses, start=1):
        record = logging.makeLogRecord({"name": "train", "filename": "progress_bar.py"})
        report.line(record, f"epoch {epoch} | loss {loss} | ppl {loss}")
    assert report.end() == status
    said = f"llrnn train: error: no loss is finite (train loss {losses[-1]}, perplexity {losses[-1]}): the training "
    assert capsys.readouterr().err.startswith(said if status else "")


def test_a_training_that_diverges_fails(shell: Shell, world: World) -> None:
    options = ["--max-epoch", 1, "--no-save", "--lr", 1e9]
    done = shell.run("llrnn", "train", world.data, *SMALL, *options, code=1)
    assert "the best" not in done.out and "best epoch" not in done.out
    assert "llrnn train: error: no validation loss is finite (valid loss " in done.err


def test_what_is_asked_of_fairseq_stays_as_it_is(shell: Shell, world: World) -> None:
    common = [world.data, *SMALL, "--max-epoch", 1, "--no-save"]
    json = shell.run("llrnn", "train", *common, "--log-format", "json")
    assert json.json_lines("valid")[0]["valid_ppl"] > 1
    everything = shell.run("llrnn", "train", *common, "-v")
    assert "| INFO | fairseq_cli.train | task: LLRNNLanguageModelingTask" in everything.out
    assert "| INFO | valid | epoch 001 | valid on 'valid' subset | loss" in everything.out
    assert "best epoch" not in everything.out


def test_a_user_wins(shell: Shell, world: World, tmp_path: Path) -> None:
    """Also with an option in two words, or in one with `=`."""
    options = ["--optimizer=adagrad", "--lr", "0.1", "--batch-size", "8", "--arch", "llrnn_lbl", "--max-update", "1"]
    done = shell.run("llrnn", "train", world.data, *SMALL[-5:], *options, "--save-dir", tmp_path)
    assert not re.search("--optimizer|--max-tokens|--arch|--max-epoch", done.out.splitlines()[0])
    cfg = read_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]
    found = (cfg["model"]["_name"], cfg["optimizer"]._name, cfg["dataset"]["batch_size"])
    assert found == ("llrnn_lbl", "adagrad", 8)


@pytest.mark.parametrize(
    ("words", "present", "absent"),
    [
        ("", "--max-epoch 30 --patience 3", "--keep-interval-updates"),
        ("--max-epoch 30", "--max-epoch 30 --patience 3", "--keep-interval-updates"),
        ("--max-epoch 7", "--patience 3", "--max-epoch"),
        ("--max-epoch=70", "--patience 3", "--max-epoch"),
        ("--max-epoch 7 --patience -1", "", "--patience|--max-epoch"),
        ("--patience 9", "", "--patience|--max-epoch"),
        ("--max-update 7 --max-epoch 7", "", "--patience|--max-epoch"),
        ("--stop-time-hours 1", "", "--patience|--max-epoch"),
        ("--stop-min-lr 0.1", "", "--patience|--max-epoch"),
        ("--save-interval-updates 5", "--keep-interval-updates 3", "--save-interval-updates"),
        ("--save-interval-updates=5 --keep-interval-updates -1", "", "--keep-interval-updates"),
    ],
)
def test_limits_and_checkpoints_unless_the_user_sets_them(
    words: str, present: str, absent: str, world: World
) -> None:
    found = " ".join(added("train", [str(world.data), "--arch", "llrnn_lm", *words.split()], str(USER_DIR)))
    assert f" {present}" in f"{found} "
    assert not re.search(f"{absent} ", f"{found} ")


def test_the_last_checkpoints_within_epochs_are_kept(shell: Shell, world: World, tmp_path: Path) -> None:
    options = ["--max-epoch", 1, "--max-tokens", 100, "--save-interval-updates", 1, "--disable-validation"]
    shell.run("llrnn", "train", world.data, *SMALL, *options, "--save-dir", tmp_path)
    updates = [int(path.stem.rpartition("_")[2]) for path in tmp_path.glob("checkpoint_1_*.pt")]
    assert len(updates) == 3 and min(updates) > 1 and max(updates) - min(updates) == 2


# `llrnn`, and beside it what ends it as soon as its output tells of a second epoch
STOPPED = """
import os, signal, sys, threading, time
from pathlib import Path
from fairseq_llrnn.cli.main import main

def stop():
    while "epoch 2:" not in Path("/proc/self/fd/1").read_text():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=stop, daemon=True).start()
sys.exit(main())
"""


def test_a_stop_is_a_line_and_the_same_command_goes_on(shell: Shell, world: World, tmp_path: Path) -> None:
    """By SIGTERM, of which cli/main.py makes an interruption (tests/cli/test_main.py)."""
    arguments = [world.data, *SMALL, "--save-dir", tmp_path]
    said = shell.run("python", "-c", STOPPED, "train", *arguments, "--max-epoch", 100000, code=143).err
    found = re.fullmatch(
        rf"llrnn train: stopped; the same command resumes from {tmp_path}/checkpoint_last.pt \(epoch (\d+), update "
        r"(\d+)\)\n", said
    )  # fmt: skip
    assert found is not None, said
    epoch, update = map(int, found.groups())
    _, begins, first, *_ = told(shell.run("llrnn", "train", *arguments, "--max-epoch", epoch + 1))
    assert f", update {update};" in begins and first.startswith(f"epoch {epoch + 1}: ")


OTHERS = """
import multiprocessing, signal, sys, time
import fairseq_cli.train
from fairseq_llrnn.cli.main import main

def run():
    signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[-1] == "deaf" else signal.SIG_DFL)
    begun.set()
    time.sleep(600)

multiprocessing = multiprocessing.get_context("fork")
begun = multiprocessing.Event()
other = multiprocessing.Process(target=run)

def start():
    other.start()
    begun.wait()
    raise KeyboardInterrupt(signal.SIGTERM)

fairseq_cli.train.cli_main = start
status = main()
other.join()
print(status, other.exitcode)
"""


@pytest.mark.parametrize(("other", "ended"), [("hears", -signal.SIGTERM), ("deaf", -signal.SIGKILL)])
def test_a_stop_ends_the_processes_of_other_gpus(other: str, ended: int, shell: Shell, world: World) -> None:
    """fairseq starts them, and Python would wait for their end. A signal that comes during a start is lost."""
    out = shell.run("python", "-c", OTHERS, "train", world.data, other).out
    assert out.splitlines()[-1] == f"143 {ended}"


# ---- mistakes -------------------------------------------------------------------------------------------------------

# option, its misspelling; and what belongs behind it
MISSPELT = {
    "train": ("--prior", "--pior", "x"),
    "interactive": ("--buffer-size", "--bufer-size", "4"),
}


def test_a_stop_before_anything_is_saved(tmp_path: Path) -> None:
    from fairseq_llrnn.plugin.command_lines import Report

    assert Report(tmp_path, "loss", "", "").stopped() == (
        "stopped before the first checkpoint; the same command starts from scratch (--save-interval-updates N saves "
        "more often)"
    )


@pytest.mark.parametrize(
    ("command", "joined", "bare"), [("train", True, False), ("interactive", True, False), ("train", False, True)]
)
def test_a_misspelt_option(command: str, joined: bool, bare: bool, shell: Shell, world: World, model: Path) -> None:
    """An abbreviation, too, which fairseq takes for nothing; of fairseq's own command where it names our task."""
    option, misspelt, value = MISSPELT[command]
    words = [f"{misspelt}={value}"] if joined else [misspelt, value]
    path = ["--path", model] if command == "interactive" else []
    arch = ["--arch", "llrnn_lm"] if command == "train" else []  # without, fairseq ends in a trace before it looks
    start = [f"fairseq-{command}", *world.task_args(), *arch] if bare else ["llrnn", command, world.data]
    done = shell.run(*map(str, start), *path, *words, code=2)
    last = done.err.splitlines()[-1]
    name = f"fairseq-{command}" if bare else f"llrnn {command}"
    assert last == f"{name}: error: unrecognized arguments: {' '.join(words)}; did you mean {option}?"
    assert "usage:" not in done.err
    if not bare:
        assert done.err.count("\n") == 1 and done.out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--arch"], "argument --arch/-a: expected one argument"),
        (["--arch", "llrnn_lmm"], "invalid choice: 'llrnn_lmm'; did you mean llrnn_lm?"),
        (["--arch", "llrnn_lstm_lm"], "invalid choice: 'llrnn_lstm_lm'; did you mean llrnn_lm?"),
        (["--arch", "zzzz"], "invalid choice: 'zzzz'; llrnn train --help lists all options"),
        (["--sample-break-mode", "eoss"], "did you mean eos?"),
        (["--embed-dim", "8"], "or --decoder-embed-dim?"),
        (["--lr", "fast"], "argument --lr: invalid value: 'fast'; llrnn train --help lists"),
        (["--prior", "p", "--max-epoch", "three"],
         "argument --max-epoch: invalid int value: 'three'; llrnn train --help lists"),
        (["stray"], "unrecognized arguments: stray"),
        (["--best-checkpoint-metric", "blue", *SMALL, "--no-save", "--max-update", "1"],
         "with KeyError: 'blue'; check the options (-v prints the trace)"),
        (["--max-update", "0"], "--max-update 0 and --max-epoch 0 mean no limit; set one"),
    ],
)  # fmt: skip
def test_other_mistakes_are_a_line(words: list[str], said: str, shell: Shell, world: World) -> None:
    fails(shell.run("llrnn", "train", world.data, *words, code=2), "llrnn train: error: ", said)


def test_a_checkpoint_that_is_none_of_ours(shell: Shell, world: World, model: Path, tmp_path: Path) -> None:
    state = read_checkpoint(model)
    state["cfg"]["task"]["_name"] = "translation"
    torch.save(state, tmp_path / "other.pt")
    text = tmp_path / "text.pt"
    text.write_text("le chat\n", encoding="utf-8")
    for path, words in (
        (tmp_path / "other.pt", ["found one of 'translation'; use fairseq-generate"]),
        (text, ["expected a checkpoint, found a text"]),
        (tmp_path / "nowhere.pt", ["found no such file"]),
    ):
        done = shell.run("llrnn", "generate", world.data, "--path", path, code=2)
        fails(done, f"llrnn generate: error: --path {path}: ", *words)


STOPS = """
import runpy, sys
import fairseq.tasks.fairseq_task
from fairseq_llrnn.cli.main import main

def cli_main():
    fairseq.tasks.fairseq_task.FairseqTask.dataset(fairseq.tasks.fairseq_task.FairseqTask(None), "x")

import fairseq_cli.train
fairseq_cli.train.cli_main = cli_main
sys.exit(main())
"""


def test_what_fairseq_itself_raises_is_a_line(shell: Shell, world: World) -> None:
    done = shell.run("python", "-c", STOPS, "train", world.data, code=2)
    fails(done, "llrnn train: error: fairseq failed in fairseq_task.py, line ", "KeyError: ", "(-v prints the trace)")
    assert "Traceback" in shell.run("python", "-c", STOPS, "train", world.data, "-v", code=1).err


@pytest.mark.parametrize(
    ("command", "wrong", "right"),
    [
        ("eval-lm", "--valid-subset", "--gen-subset"),
        ("generate", "--valid-subset", "--gen-subset"),
        ("validate", "--gen-subset", "--valid-subset"),
    ],
)
def test_the_other_option_of_data_sets(command: str, wrong: str, right: str, world: World) -> None:
    with pytest.raises(OptionError, match=f"^{wrong}: expected {right} with llrnn {command}, which chooses"):
        added(command, [str(world.data), wrong, "test"], str(USER_DIR))


def test_a_default_that_is_written_out_changes_nothing(world: World) -> None:
    begin = [str(world.data), "--arch", "llrnn_lm"]
    usual = added("train", begin, str(USER_DIR))
    assert added("train", [*begin, "--optimizer", "adam", "--max-epoch=30"], str(USER_DIR)) == usual
    other = added("train", [*begin, "--optimizer", "sgd"], str(USER_DIR))
    assert "--lr" in usual and "--lr" not in other


@pytest.mark.parametrize("command", ["eval-lm", "validate"])
def test_several_models_for_a_command_of_one(command: str, world: World) -> None:
    with pytest.raises(OptionError, match="^--path a.pt:b.pt: expected one checkpoint, found several; run the command"):
        added(command, [str(world.data), "--path", "a.pt:b.pt"], str(USER_DIR))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-len-b", "0"], "--min-len 1 exceeds the greatest length of a hypothesis, which is "),
        (["--min-len", "9"], "plus --max-len-b 8; raise --max-len-b, or lower --min-len"),
        (["--max-len-a", "0.1", "--max-len-b", "0"], "which is --max-len-a 0.1 times the length of the source plus"),
    ],
)
def test_a_search_that_no_hypothesis_can_satisfy(
    words: list[str], said: str, shell: Shell, world: World, translation: TranslationWorld, model: Path,
    translator: Path,
) -> None:  # fmt: skip
    for data, path in ((world.data, model), (translation.data, translator)):
        begin = ["--prefix-size", "1"] if path == model else []
        done = shell.run("llrnn", "generate", data, "--path", path, *SEARCH, *begin, *words, code=2)
        assert done.err.splitlines()[-1].startswith("llrnn generate: error: ") and said in done.err.splitlines()[-1]
        assert "Traceback" not in done.err and not lines(done)


def test_constraints_that_no_search_has(
    shell: Shell, world: World, translation: TranslationWorld, model: Path, translator: Path
) -> None:
    """Not in a data set, and not for a language model."""
    with_them = ["--constraints", *SEARCH]
    done = shell.run("llrnn", "generate", world.data, "--path", model, *with_them, code=2)
    assert done.err.splitlines()[-1].endswith("found a language model; use a grammar instead")
    done = shell.run("llrnn", "generate", translation.data, "--path", translator, *with_them, code=2)
    said = "--constraints: expected constraints with each sentence, found none in the data; use llrnn interactive"
    assert said in done.err.splitlines()[-1]
    done = shell.run("llrnn", "interactive", translation.data, "--path", translator, *with_them, stdin="el tahc\tle\n")
    assert "le" in done.best()[0].split()


# ---- what a language model generates --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model_of_blocks(shell: Shell, world: World) -> Path:
    place = world.place / "of-blocks"
    blocks = ["--sample-break-mode", "none", "--tokens-per-sample", 16]
    shell.run("llrnn", "train", world.data, *SMALL, *TRAINING, *blocks, "--max-epoch", 1, "--save-dir", place)
    return place / "checkpoint_best.pt"


def test_sentences_of_a_model_of_blocks(shell: Shell, as_typed: Llrnn, world: World, model_of_blocks: Path) -> None:
    """eval-lm has the figure of score, unless the user sets blocks; validate names the reason for another one."""
    text = "".join(f"{line}\n" for line in world.text("test"))
    facts = json.loads(as_typed("score", "--path", model_of_blocks, "--json", stdin=text).out)
    command = ("llrnn", "eval-lm", world.data, "--path", model_of_blocks, "--gen-subset", "test", "--cpu")
    done, blocks = shell.run(*command), shell.run(*command, "--sample-break-mode", "none")
    losses = [float(re.findall(r"Loss \(base 2\): ([\d.]+)", each.out)[0]) for each in (done, blocks)]
    assert losses[0] == pytest.approx(facts["bits_per_token"], abs=2e-4) != losses[1]
    note = f"warning: {model_of_blocks} was trained in blocks of text (--sample-break-mode none): "
    assert f"{note}each sentence is scored alone, as in llrnn score; add" in done.err
    assert "trained in blocks" not in blocks.err
    valid = ("llrnn", "validate", world.data, "--path", model_of_blocks, "--cpu")
    assert f"{note}blocks that begin inside a sentence lack context" in shell.run(*valid).err


def test_a_treebank_is_not_continued(shell: Shell, world: World, model: Path) -> None:
    row = "1\tle" + 8 * "\t_"
    done = shell.run("llrnn", "interactive", world.data, "--path", model, "--cpu", stdin=f"# text\n{row}\n", code=2)
    assert "llrnn interactive: error: stdin: expected a tokenised text, found a treebank in CoNLL-U; write" in done.err


@pytest.mark.parametrize("trained", ["model", "model_of_blocks"])
def test_a_language_model_draws_or_continues_sentences(
    trained: str, shell: Shell, world: World, request: pytest.FixtureRequest
) -> None:
    """It never repeats the sentences of the text, and is not compared with them."""
    path = request.getfixturevalue(trained)
    common = [world.data, "--path", path, "--gen-subset", "test1", "--max-len-b", 12, "--cpu"]
    text = world.text("test1")
    drawn = shell.run("llrnn", "generate", *common)
    assert len(set(drawn.best().values())) > 1 and not {*drawn.best().values()} & {*text}
    again = shell.run("llrnn", "generate", *common, "--seed", 2)
    assert again.best() != drawn.best()
    same = shell.run("llrnn", "generate", *common, "--prefix-size", 0, "--beam", 3)
    assert len(set(same.best().values())) == 1 and len(same.best()) == len(text)
    warned = "warning: without --prefix-size, all sentences have the same hypotheses; use"
    assert warned in same.err and warned not in drawn.err
    continued = shell.run("llrnn", "generate", *common, "--prefix-size", 2, "--beam", 3)
    assert warned not in continued.err
    for number, sentence in continued.best().items():
        assert sentence.split()[:2] == text[number].split()[:2]
    for done in (drawn, same, continued):
        assert "BLEU" not in done.out and not lines(done, "T-")


@pytest.mark.parametrize("words", [[], ["--prefix-size", "3"]])
def test_a_language_model_in_blocks_of_the_text(words: list[str], shell: Shell, world: World, model: Path) -> None:
    """A block may begin with the end of a sentence, and have several in what is forced."""
    blocks = ["--sample-break-mode", "none", "--tokens-per-sample", "5", "--max-len-b", "12", "--cpu"]
    done = shell.run("llrnn", "generate", world.data, "--path", model, "--gen-subset", "test", *blocks, *words)
    assert len(lines(done, "H-")) > len(world.text("test")) and "Traceback" not in done.err


def test_a_translator_and_data_of_one_language(shell: Shell, world: World, translator: Path) -> None:
    done = shell.run("llrnn", "generate", world.data, "--path", translator, code=2)
    assert f"llrnn generate: error: {world.data}: expected the data of a translation, with files" in done.err
    assert "Traceback" not in done.err


def test_data_that_is_none(tmp_path: Path) -> None:
    text = tmp_path / "train.txt"
    text.write_text("le chat\n", encoding="utf-8")
    expected = "expected DATA, a folder of fairseq-preprocess (with dict.txt, or two of dict.LANGUAGE.txt), found "
    for words, found in (
        ([], "none among the arguments; add it"),
        (["--prior", tmp_path], "none among the arguments; add it"),
        ([tmp_path], "a folder without dictionaries; check the path"),
        ([tmp_path / "nowhere"], "no such folder; check the path, or run fairseq-preprocess first"),
        (["data", "--prior", tmp_path], "no such folder"),
        (["x" * 5000], "no such folder"),  # in a message that is cut
        ([text], "a file; convert the text with fairseq-preprocess, and pass its --destdir"),
        (["--prior", tmp_path, text], "none among the arguments; add it"),
        ([text, "--prior", tmp_path], "a file; convert the text"),
    ):
        with pytest.raises(OptionError, match=re.escape(f"{expected}{found}")):
            added("train", [str(word) for word in words], str(USER_DIR))


def test_what_a_checkpoint_says_is_no_other_option(shell: Shell, world: World, model: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "__init__.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')", encoding="utf-8")
    state = read_checkpoint(model)
    state["cfg"]["task"]["sample_break_mode"] = f"--user-dir={evil}"
    torch.save(state, tmp_path / "hostile.pt")
    done = shell.run("llrnn", "eval-lm", world.data, "--path", tmp_path / "hostile.pt", code=2)
    fails(done, "argument --sample-break-mode: invalid choice: '--user-dir=")
    assert not (tmp_path / "touched").exists()


# ---- help -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train", "interactive"])
def test_help_is_short_and_all_of_it_is_fairseqs(command: str, shell: Shell) -> None:
    short = shell.run("llrnn", command, "data", "--help").out
    assert len(short.splitlines()) < 50
    assert ("\nconstraints:\n  a grammar or regular expression in the prior" in short) == (command == "interactive")
    assert "--help-all" in short and f"examples:\n  {'echo' if command == 'interactive' else 'llrnn'} " in short
    for words in (["--help-all"], ["-v", "--help"]):
        shown = shell.run("llrnn", command, *words).out
        assert "--skip-invalid-size-inputs-valid-test" in shown
        assert "llrnn_language_modeling" in shown or "--task TASK" in shown


def test_a_prompt_longer_than_a_hypothesis(shell: Shell, world: World, model: Path) -> None:
    """fairseq cuts it without a message. Other lines have their answers."""
    arguments = ["llrnn", "interactive", world.data, "--path", model, "--cpu", "--beam", 2]
    result = shell.run(*arguments, "--max-len-b", 3, stdin="le chat\nle chat voit la mer\n", code=2)
    message = "expected a prefix of at most 3 words, the limit of a hypothesis, found 5; raise --max-len-b"
    assert f"sentence 2 of the input: {message}\n" in result.err
    assert len(lines(result, "H-0")) == 1 and not lines(result, "H-1")
    assert lines(shell.run(*arguments, "--max-len-b", 5, stdin="le chat voit la mer\n"), "H-0")
