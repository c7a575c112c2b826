"""What a user can get wrong around training: one line on stderr that says what, where, and how to mend it."""

import json
import shutil
from pathlib import Path

import pytest
from host_commands import HostCommands, Result
from tiny_world import EVERY_SENTENCE, World, sentences


def assert_says(result: Result, *words: str) -> None:
    """The command failed with one line of ours, which holds `words`, and without a stack trace."""
    assert result.code != 0
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("fairseq_llrnn: error: "), result.err[-2000:]
    for word in words:
        assert word in last, last
    assert "Traceback" not in result.err


OPTIONS = {
    "a stock model under our criterion": (["--arch", "lstm_lm"], ["log-linear model", "--arch llrnn_lm"]),
    "our model under the stock task": (
        ["--task", "language_modeling", "--criterion", "cross_entropy"],
        ["--arch llrnn_lm", "--task llrnn_language_modeling"],
    ),
    "our criterion under the stock task": (
        ["--task", "language_modeling", "--arch", "lstm_lm"],
        ["--criterion log_linear", "llrnn_language_modeling"],
    ),
    "add bos": (["--add-bos-token"], ["--add-bos-token: not supported", "leave it out"]),
    "self target": (["--self-target"], ["--self-target: not supported", "leave it out"]),
    "past target": (["--past-target"], ["--past-target: not supported", "leave it out"]),
    "output dictionary": (
        ["--output-dictionary-size", "30"],
        ["--output-dictionary-size 30: not supported", "leave it out"],
    ),
    "tied with unequal sizes": (
        ["--tie-features", "--decoder-embed-dim", "8"],
        ["--tie-features", "--decoder-embed-dim", "--decoder-hidden-size", "found 8 and 16"],
    ),
    "a group that is not there": (
        ["--report-group", "Gendre"],
        ["--report-group Gendre", "Gender, Mood", "did you mean Gender?"],
    ),
    "norm below one": (["--adaptor-norm", "0.5"], ["--adaptor-norm 0.5", "at least 1"]),
    "no norm": (["--adaptor-norm", "nan"], ["--adaptor-norm nan", "at least 1"]),
    "negative penalty": (["--adaptor-penalty=-0.1"], ["--adaptor-penalty -0.1", "at least 0"]),
    "infinite penalty": (["--adaptor-penalty", "inf"], ["--adaptor-penalty inf", "finite"]),
    "no layers": (["--decoder-layers", "0"], ["--decoder-layers 0", "at least 1"]),
    "no width": (["--decoder-hidden-size", "-3"], ["--decoder-hidden-size -3", "at least 1"]),
    "negative window": (["--context-window", "-1"], ["--context-window -1", "0 (no limit)"]),
    "dropout above one": (["--dropout", "1.5"], ["--dropout 1.5", "from 0"]),
    "dropout of everything": (["--dropout-out", "1"], ["--dropout-out 1", "from 0"]),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, host: HostCommands, world: World) -> None:
    options, words = OPTIONS[name]
    arguments = world.train_args()
    if "language_modeling" in options:  # the stock task knows no prior
        where = arguments.index("--prior")
        del arguments[where : where + 2]
    assert_says(host.run("fairseq-train", *arguments, *options, "--max-update", 1, code=None), *words)


def test_tied_features_that_differ(host: HostCommands, world: World) -> None:
    result = host.run("fairseq-train", *world.train_args("separate"), "--tie-features", "--max-update", 1, code=None)
    assert_says(result, "--tie-features", "same features in input and output", "--input-features")


# ---- the prior -----------------------------------------------------------------------------------------------------


def test_no_prior(host: HostCommands, world: World, tmp_path: Path) -> None:
    result = host.run("fairseq-train", *world.train_args(), "--prior", tmp_path / "none", code=None)
    assert_says(result, str(tmp_path / "none"), "expected a prior", "llrnn prior")


@pytest.fixture(scope="module")
def other_dictionary(host: HostCommands, world: World) -> Path:
    """A data-bin whose dictionary lacks the rare words, and the ordinary prior's neighbour without one of its own."""
    place = world.place / "other-bin"
    host.run(
        "fairseq-preprocess", "--only-source", "--trainpref", world.place / "train.txt", "--validpref",
        world.place / "valid.txt", "--thresholdsrc", 3, "--destdir", place,
    )  # fmt: skip
    return place


def test_a_prior_for_another_dictionary(
    host: HostCommands, world: World, trained: Path, other_dictionary: Path
) -> None:
    arguments = [str(other_dictionary), *world.train_args()[1:]]
    words = ["another dictionary", str(other_dictionary / "dict.txt"), "sizes 56 and", "first difference at index", "--dict"]
    assert_says(host.run("fairseq-train", *arguments, code=None), *words)
    scored = [str(other_dictionary), *world.task_args()[1:], "--path", trained / "checkpoint_best.pt"]
    assert_says(host.run("fairseq-eval-lm", *scored, "--gen-subset", "valid", code=None), *words)


def test_a_damaged_prior(host: HostCommands, world: World, tmp_path: Path) -> None:
    place = tmp_path / "prior"
    shutil.copytree(world.prior("prior"), place)
    (place / "arrays.npz").write_bytes((place / "arrays.npz").read_bytes()[:-100])
    result = host.run("fairseq-train", *world.train_args(), "--prior", place, code=None)
    assert_says(result, "arrays.npz", "truncated or changed", "llrnn prior")


def test_a_prior_of_another_version(host: HostCommands, world: World, tmp_path: Path) -> None:
    place = tmp_path / "prior"
    shutil.copytree(world.prior("prior"), place)
    description = json.loads((place / "prior.json").read_text(encoding="utf-8"))
    (place / "prior.json").write_text(json.dumps({**description, "version": 99}), encoding="utf-8")
    result = host.run("fairseq-train", *world.train_args(), "--prior", place, code=None)
    assert_says(result, "prior.json", "found 99", "llrnn prior")


@pytest.mark.parametrize("command", ["fairseq-train", "fairseq-validate", "fairseq-eval-lm", "fairseq-generate"])
def test_a_checkpoint_trained_with_another_prior(
    command: str, host: HostCommands, world: World, trained: Path, tmp_path: Path
) -> None:
    """`flat` has the features and sizes of `prior`: every tensor would fit, and mean something else."""
    checkpoint = trained / "checkpoint_last.pt"
    arguments = {
        "fairseq-train": [*world.train_args("flat"), "--restore-file", checkpoint],
        "fairseq-validate": [*world.task_args("flat"), "--path", checkpoint, "--max-tokens", 100],
        "fairseq-eval-lm": [*world.task_args("flat"), "--path", checkpoint, "--gen-subset", "valid"],
        "fairseq-generate": [*world.task_args("flat"), "--path", checkpoint, "--prefix-size", 1],
    }[command]
    result = host.run(command, *arguments, code=None)
    assert_says(result, "trained with another prior", "--prior")


# ---- targets without mass ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without_lac(host: HostCommands, world: World) -> Path:
    """A prior whose background gives the word `lac` no mass."""
    symbols = [line.rpartition(" ")[0] for line in (world.data / "dict.txt").read_text(encoding="utf-8").splitlines()]
    weights = world.place / "weights.tsv"
    kept = [s for s in [*symbols, "</s>", "<unk>"] if s != "lac" and not s.startswith("madeup")]
    weights.write_text("".join(f"{symbol}\t1\n" for symbol in kept), encoding="utf-8")
    place = world.place / "without-lac"
    host.run(
        "llrnn", "prior", "--dict", world.data / "dict.txt", "--lexicon", world.place / "lexicon.tsv", "--top-words", 20,
        "--background", weights, "--out", place,
    )  # fmt: skip
    return place


def test_a_target_without_mass_in_training(host: HostCommands, world: World, without_lac: Path, tmp_path: Path) -> None:
    result = host.run(
        "fairseq-train", *world.train_args(), "--prior", without_lac, "--max-tokens", 5000, "--save-dir", tmp_path,
        code=None,
    )  # fmt: skip
    places = [(i + 1, line.split().index("lac") + 1) for i, line in enumerate(world.text("train")) if "lac" in line.split()]
    assert_says(result, "'lac'", "no mass", "--smoothing")
    said = result.err.strip().splitlines()[-1]
    assert any(f"position {position} of sample {sentence} " in said for sentence, position in places), said
    assert f"{sum(line.split().count('lac') for line in world.text('train'))} such targets" in said


@pytest.mark.parametrize("command", ["fairseq-validate", "fairseq-eval-lm"])
def test_a_target_without_mass_in_evaluation(
    command: str, host: HostCommands, world: World, without_lac: Path, tmp_path: Path
) -> None:
    """The host's scorer would leave such words out and call the rest the perplexity."""
    text = tmp_path / "text.txt"
    lines = [line for line in sentences(12, seed=9) if "lac" not in line.split()]
    lines[5] = "un roi voit le lac froid"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    without = tmp_path / "train.txt"
    without.write_text("\n".join(line for line in lines if "lac" not in line) + "\n", encoding="utf-8")
    data = tmp_path / "bin"
    host.run(
        "fairseq-preprocess", "--only-source", "--trainpref", without, "--validpref", text, "--destdir", data, "--srcdict",
        world.data / "dict.txt",
    )  # fmt: skip
    arguments = [data, *world.train_args(save_dir=tmp_path)[1:], "--prior", without_lac]
    host.run("fairseq-train", *arguments, "--disable-validation", "--max-epoch", 1)
    scored = [data, *world.task_args()[1:], "--prior", without_lac, "--path", tmp_path / "checkpoint_last.pt"]
    scored += ["--max-tokens", 1000, "--num-workers", 0, *EVERY_SENTENCE]
    if command == "fairseq-eval-lm":
        scored += ["--gen-subset", "valid", "--sample-break-mode", "eos"]
    assert_says(host.run(command, *scored, code=None), "'lac'", "no mass", "position 5 of sample 6 ")
