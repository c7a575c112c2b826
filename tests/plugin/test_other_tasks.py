"""What makes our tasks safe changes nothing for other tasks, nor for other users of torch and fairseq.

Programs and commands run in processes that have imported fairseq alone.
"""

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import EVERY_SENTENCE, World, read_checkpoint

# fairseq's transformer_lm is one of its few models whose checkpoints torch reads without being told to trust them
SIZES = ["--decoder-embed-dim", "8", "--decoder-ffn-embed-dim", "8", "--decoder-layers", "1"]

PROGRAM = """
import builtins, logging, sys
import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from pathlib import Path

def state():
    return (
        torch.load, set(torch.serialization.get_safe_globals()), vars(builtins).copy(), sys.excepthook,
        checkpoint_utils.load_checkpoint_to_cpu, distributed_utils.broadcast_object,
        [name for name, module in sys.modules.items() if name.startswith("fairseq.") and "eval" in vars(module)],
        tuple(logging.root.handlers), logging.root.level,
    )

ours, stock, hostile, touched = sys.argv[1:]
before = state()
import fairseq_llrnn
fairseq_llrnn.register()
assert state() == before, "after register()"

[model], _, task = checkpoint_utils.load_model_ensemble_and_task([ours])
assert type(task).__name__ == "LLRNNLanguageModelingTask"
assert state() == before, "after one of our models was loaded"
from fairseq_llrnn.errors import DataError
try:
    checkpoint_utils.load_model_ensemble_and_task([hostile], task=task)
except DataError as error:
    assert "which is not run" in str(error)
else:
    raise SystemExit("a hostile checkpoint was loaded for our task")
assert not Path(touched).exists()
assert state() == before, "after one was refused"

# fairseq's own task: as fairseq does it, also what we would rather not
task = None
for own_task in ("of the checkpoint", "given"):
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task([stock], task=task)
    assert type(task).__name__ == "LanguageModelingTask"
    try:
        checkpoint_utils.load_model_ensemble_and_task([hostile], task=None if own_task == "of the checkpoint" else task)
    except DataError:
        raise SystemExit("fairseq's own task was looked after")
    except Exception:
        pass
    assert Path(touched).exists(), "fairseq evaluates the options of its models"
    Path(touched).rmdir()
assert state() == before, "at the end"
print("nothing changed")
"""


@pytest.fixture(scope="module")
def stock(shell: Shell, world: World) -> Path:
    """A model of fairseq's own."""
    place = world.place / "transformer_lm"
    shell.run(
        "fairseq-train", world.data, "--task", "language_modeling", "--arch", "transformer_lm", *SIZES, "--criterion",
        "cross_entropy", "--sample-break-mode", "eos", "--tokens-per-sample", 64, "--max-tokens", 128, "--optimizer",
        "adam", "--cpu", "--save-dir", place, "--no-epoch-checkpoints", "--max-update", 1, "--num-workers", 0,
    )  # fmt: skip
    return place / "checkpoint_last.pt"


@pytest.fixture
def hostile(stock: Path, tmp_path: Path) -> Path:
    """Beside it, `touched` will be a folder if code in the options of this checkpoint is run."""
    state = read_checkpoint(stock)
    model = state["cfg"]["model"]
    model["criterion"] = "adaptive_loss"
    model["adaptive_softmax_cutoff"] = f"__import__('os').mkdir({str(tmp_path / 'touched')!r}) or '10'"
    path = tmp_path / "hostile.pt"
    torch.save(state, path)
    return path


def test_other_users_in_the_same_process_see_no_change(
    trained: Path, stock: Path, hostile: Path, beside_fairseq: Shell
) -> None:
    files = (trained / "checkpoint_last.pt", stock, hostile, hostile.parent / "touched")
    assert beside_fairseq.run("python", "-c", PROGRAM, *files).out.endswith("nothing changed\n")


def test_a_command_with_a_task_of_fairseq_is_as_without_us(
    world: World, stock: Path, hostile: Path, beside_fairseq: Shell
) -> None:
    """What it prints, and how it fails where it must: torch refuses a Namespace, and fairseq evaluates options."""
    legacy, touched = hostile.with_name("legacy.pt"), hostile.parent / "touched"
    torch.save({**read_checkpoint(stock), "args": Namespace()}, legacy)
    said: dict[Path, list[tuple[int, str]]] = {}
    for user_dir in ((), ("--user-dir", "fairseq_llrnn")):
        for path in (stock, legacy, hostile):
            done = beside_fairseq.run(
                "fairseq-eval-lm", world.data, "--task", "language_modeling", *user_dir, "--path", path,
                "--gen-subset", "valid", "--sample-break-mode", "eos", "--cpu", "--max-tokens", 400, *EVERY_SENTENCE,
                code=None,
            )  # fmt: skip
            last = done.err.strip().splitlines()[-1]
            said.setdefault(path, []).append((done.code, last.partition("Loss")[2] or last))
            assert path is stock or "Traceback" in done.err
        touched.rmdir()  # it fails where nothing was run
    for without, beside in said.values():
        assert without == beside
    assert said[stock][0][0] == 0 and said[legacy][0][0] == said[hostile][0][0] == 1


@pytest.mark.parametrize("command", ["fairseq-validate", "fairseq-generate", "fairseq-eval-lm"])
def test_a_command_with_our_task_runs_nothing_of_a_checkpoint_of_another(
    command: str, shell: Shell, world: World, hostile: Path
) -> None:
    result = shell.run(command, *world.task_args(), "--path", hostile, "--max-tokens", 100, code=1)
    assert not (hostile.parent / "touched").exists()
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("fairseq_llrnn: error: option value \"__import__('os').mkdir(") and "not run" in last


def test_a_task_set_up_from_a_checkpoint_by_hand_runs_none_of_its_experts(trained: Path, tmp_path: Path) -> None:
    from fairseq import checkpoint_utils, tasks

    from fairseq_llrnn.errors import OptionError
    from fairseq_llrnn.plugin.compat.loading import read_checkpoint as read_safely

    options = read_safely(str(trained / "checkpoint_last.pt"))["cfg"]["task"]
    options.expert = f"{tmp_path / 'nowhere.py'}:Evil"
    assert tasks.setup_task(options, from_checkpoint=True).extensions == ()
    with pytest.raises(OptionError, match="nowhere.py"):  # of a command line, they are the user's
        tasks.setup_task(options)
    assert not hasattr(checkpoint_utils.load_checkpoint_to_cpu, "__wrapped__")
