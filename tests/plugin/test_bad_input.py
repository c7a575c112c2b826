"""What a user can get wrong around training: one line on stderr that says what, where, and how to fix it."""

import copy
import gc
import itertools
import math
import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from shell import Shell, assert_says
from tiny_world import EVERY_SENTENCE, Setting, World, build, sentences

from fairseq_llrnn.errors import OptionError

COMMANDS = {
    "our model under the stock task": (
        ["--task", "language_modeling"],
        ["a model llrnn_lm needs", "--task llrnn_language_modeling"],
    ),
    "our criterion under the stock task": (
        ["--task", "language_modeling", "--arch", "lstm_lm"],
        ["--criterion log_linear", "llrnn_language_modeling"],
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, shell: Shell, world: World) -> None:
    options, words = COMMANDS[name]
    arguments = world.train_args()
    if "language_modeling" in options:  # the stock task knows no prior
        where = arguments.index("--prior")
        del arguments[where : where + 2]
    assert_says(shell.run("fairseq-train", *arguments, *options, "--max-update", 1, code=None), *words)


def test_a_criterion_of_another_kind_of_model_is_refused_before_the_first_batch(world: World) -> None:
    from fairseq import tasks
    from fairseq.criterions.cross_entropy import CrossEntropyCriterion

    ours = build(world.train_args())
    task = tasks.setup_task(ours.cfg.task)
    assert task.build_criterion(ours.cfg.criterion), "of which model is not known yet"
    task.log_linear = False
    with pytest.raises(OptionError, match="--criterion log_linear needs a log-linear model .*, found another one"):
        task.build_criterion(ours.cfg.criterion)
    for name, fits in (("cross_entropy", True), ("adaptive_loss", False)):
        cfg = OmegaConf.create({"_name": name, "sentence_avg": False} | ({} if fits else {"ddp_backend": "legacy_ddp"}))
        if fits:
            assert isinstance(ours.task.build_criterion(cfg), CrossEntropyCriterion)
        else:
            with pytest.raises(OptionError, match="--criterion adaptive_loss: not for log-linear models"):
                ours.task.build_criterion(cfg)


THREADS = """
import importlib.util, sys, threading, time, torch
from fairseq_llrnn.errors import OptionError
spec = importlib.util.spec_from_file_location("user_errors", sys.argv[1])
user_errors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(user_errors)
user_errors.enter_command()
def read_ahead():
    while True:
        torch.stack([torch.tensor([1, 2, 3]) for _ in range(200)])
for _ in range(3):
    threading.Thread(target=read_ahead, daemon=True).start()
time.sleep(0.05)
raise OptionError("a mistake")
"""


def test_an_error_beside_a_thread_that_reads_ahead_is_one_line(root: Path) -> None:
    """Python stopped the thread inside torch: `terminate called without an active exception`, Aborted."""
    hook = root / "fairseq_llrnn" / "plugin" / "compat" / "user_errors.py"  # alone: without waiting for fairseq
    found = subprocess.run([sys.executable, "-c", THREADS, str(hook)], capture_output=True, text=True, cwd=root)
    assert (found.returncode, found.stderr) == (1, "fairseq_llrnn: error: a mistake\n")


@pytest.mark.parametrize(("read", "ahead"), [(0, 0), (1, 0), (None, 0), (None, 10)])
def test_workers_end_with_their_batches(setting: Setting, read: int | None, ahead: int) -> None:
    """Left to the garbage collector, each of them costs five seconds, and those forked later print a trace."""
    setting.task.load_dataset("valid")
    gc.disable()
    try:
        made = setting.task.get_batch_iterator(
            setting.task.dataset("valid"), max_tokens=20, num_workers=2, data_buffer_size=ahead
        )
        for epoch in (1, 2):
            batches = made.next_epoch_itr(shuffle=epoch == 2)
            for _ in itertools.islice(batches, read):
                pass
            assert len(multiprocessing.active_children()) == 2
        reader = batches._itr._consumer if ahead else None  # a thread, which ends after the last batch
        del made, batches
        if reader is not None:
            reader.join()
            del reader
        assert not multiprocessing.active_children()
    finally:
        gc.enable()


OPTIONS = [
    ("task", "self_target", True, "--self-target: not supported.*remove it"),
    ("task", "past_target", True, "--past-target: not supported.*remove it"),
    ("task", "output_dictionary_size", 30, "--output-dictionary-size 30: not supported.*remove it"),
    ("criterion", "adaptor_norm", 0.5, "--adaptor-norm 0.5: expected a number from 1 to 10, or inf"),
    ("criterion", "adaptor_norm", math.nan, "--adaptor-norm nan: expected a number from 1 to 10, or inf"),
    ("criterion", "adaptor_penalty", -0.1, "--adaptor-penalty -0.1: expected a number from 0 to 1,000,000"),
    ("criterion", "adaptor_penalty", math.inf, "--adaptor-penalty inf: expected a number from 0 to 1,000,000"),
    ("criterion", "label_smoothing", 1.0, "--label-smoothing 1.0: expected a share from 0 to below 1"),
    ("criterion", "report_group", "Moods", "--report-group Moods: .*did you mean Mood"),
    ("model", "decoder_layers", 0, "--decoder-layers 0: expected a number of at least 1"),
    ("model", "decoder_hidden_size", -3, "--decoder-hidden-size -3: expected a number of at least 1"),
    ("model", "decoder_embed_dim", 0, "--decoder-embed-dim 0: expected a number of at least 1"),
    ("model", "context_window", -1, r"--context-window -1: expected 0 \(no limit\)"),
    ("model", "dropout", 1.5, "--dropout 1.5: expected a probability from 0 to below 1"),
    ("model", "dropout_in", -0.1, "--dropout-in -0.1: expected a probability"),
    ("model", "dropout_in", math.nan, "--dropout-in nan: expected a probability"),
]


@pytest.fixture(scope="module")
def setting(world: World) -> Setting:
    return build(world.train_args())


@pytest.mark.parametrize(("part", "option", "value", "message"), OPTIONS)
def test_options(part: str, option: str, value: object, message: str, setting: Setting) -> None:
    """Through fairseq's own builders, without a process for each."""
    from fairseq import tasks

    builders = {"task": tasks.setup_task, "model": setting.task.build_model, "criterion": setting.task.build_criterion}
    options = copy.deepcopy(setting.cfg[part])
    options[option] = value
    with pytest.raises(OptionError, match=message):
        builders[part](options)


# ---- the prior -----------------------------------------------------------------------------------------------------


def test_no_prior(shell: Shell, world: World, tmp_path: Path) -> None:
    result = shell.run("fairseq-train", *world.train_args(), "--prior", tmp_path / "none", code=None)
    assert_says(result, f"error: --prior {tmp_path / 'none'}: expected a prior", "llrnn prior")


@pytest.fixture(scope="module")
def other_dictionary(shell: Shell, world: World) -> Path:
    """A data-bin whose dictionary lacks the rare words."""
    place = world.place / "other-bin"
    shell.run(
        "fairseq-preprocess", "--only-source", "--trainpref", world.place / "train.txt", "--validpref",
        world.place / "valid.txt", "--thresholdsrc", 3, "--destdir", place,
    )  # fmt: skip
    return place


def test_a_prior_for_another_dictionary(shell: Shell, world: World, trained: Path, other_dictionary: Path) -> None:
    arguments = [str(other_dictionary), *world.train_args()[1:]]
    words = ["another dictionary", str(other_dictionary / "dict.txt"), "sizes 56 and", "first difference at"]
    assert_says(shell.run("fairseq-train", *arguments, code=None), *words, "build it again with `llrnn prior` --dict")
    scored = [str(other_dictionary), *world.task_args()[1:], "--path", trained / "checkpoint_best.pt"]
    done = shell.run("fairseq-eval-lm", *scored, "--gen-subset", "valid", code=None)
    assert_says(done, *words, "that it was trained with")


def test_a_checkpoint_trained_with_another_prior(shell: Shell, world: World, trained: Path) -> None:
    """`flat` has the features and sizes of `prior`: every tensor would fit, and mean something else."""
    scored = [*world.task_args("flat"), "--path", trained / "checkpoint_last.pt", "--gen-subset", "valid"]
    assert_says(shell.run("fairseq-eval-lm", *scored, code=None), "trained with another prior", "--prior")


# ---- targets without mass ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without_lac(shell: Shell, world: World) -> Path:
    """A prior whose background gives the word `lac` no mass."""
    symbols = [line.rpartition(" ")[0] for line in (world.data / "dict.txt").read_text(encoding="utf-8").splitlines()]
    weights = world.place / "weights.tsv"
    kept = [s for s in [*symbols, "</s>", "<unk>"] if s != "lac" and not s.startswith("madeup")]
    weights.write_text("".join(f"{symbol}\t1\n" for symbol in kept), encoding="utf-8")
    place = world.place / "without-lac"
    shell.run(
        "llrnn", "prior", "--dict", world.data / "dict.txt", "--lexicon", world.place / "lexicon.tsv",
        "--top-words", 20, "--background", weights, "--out", place,
    )  # fmt: skip
    return place


def test_a_target_without_mass_in_training(shell: Shell, world: World, without_lac: Path, tmp_path: Path) -> None:
    result = shell.run(
        "fairseq-train", *world.train_args(), "--prior", without_lac, "--max-tokens", 5000, "--save-dir", tmp_path,
        code=None,
    )  # fmt: skip
    lines = [line.split() for line in world.text("train")]
    places = [(i + 1, words.index("lac") + 1) for i, words in enumerate(lines) if "lac" in words]
    assert_says(result, "'lac'", "no mass", "--background unigram")
    said = result.err.strip().splitlines()[-1]
    assert any(f"position {position} of sample {sentence}, " in said for sentence, position in places), said
    assert f"{sum(words.count('lac') for words in lines)} such targets" in said


def test_a_target_without_mass_in_evaluation(shell: Shell, world: World, without_lac: Path, tmp_path: Path) -> None:
    """fairseq's scorer would leave such words out and call the rest the perplexity; its search would give up."""
    lines = [line for line in sentences(12, seed=9) if "lac" not in line.split()]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines[5] = "un roi voit le lac froid"
    (tmp_path / "valid.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = tmp_path / "bin"
    shell.run(
        "fairseq-preprocess", "--only-source", "--trainpref", tmp_path / "train.txt", "--validpref",
        tmp_path / "valid.txt", "--destdir", data, "--srcdict", world.data / "dict.txt",
    )  # fmt: skip
    arguments = [data, *world.train_args(save_dir=tmp_path)[1:], "--prior", without_lac]
    shell.run("fairseq-train", *arguments, "--disable-validation", "--max-epoch", 1)
    common = [data, *world.task_args()[1:], "--prior", without_lac, "--path", tmp_path / "checkpoint_last.pt"]
    common += ["--max-tokens", 1000, "--num-workers", 0]
    for command, options in {
        "fairseq-validate": EVERY_SENTENCE,
        "fairseq-eval-lm": ["--gen-subset", "valid", "--sample-break-mode", "eos"],
    }.items():
        result = shell.run(command, *common, *options, code=None)
        assert_says(result, "'lac'", "no mass", "position 5 of sample 6, in 'un roi voit le lac froid' (1 such targets")
    typed = shell.run("fairseq-interactive", *common[:-4], "--max-len-b", 5, stdin="le chat\nle lac froid\n", code=None)
    assert re.search(r"^H-0\t\S+\tle chat ", typed.out, re.MULTILINE)
    says = "but the prefix of a sentence has it at position 2, in 'le lac froid'; use another prefix"
    says = f"gives word 'lac' probability zero, {says}"
    assert_says(typed, says, ", or build the prior with a background that covers it")
