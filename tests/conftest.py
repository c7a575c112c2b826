"""What all tests share: one thread and so much memory per process, markers by folder, skipping what is absent."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import resource
import shutil
import signal
import sys
import tempfile

# Before torch is imported: on a small machine threads of many small operators only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from built_once import own_copy
from evidence_world import EvidenceWorld, make_evidence_world
from expert_models import expert_file as expert_file
from hypothesis import settings
from quick_composition import FOLDER
from shell import Shell
from tiny_world import World, make_world
from trained_models import evidence_models as evidence_models
from trained_models import source_prior as source_prior
from trained_models import trained as trained
from translation_world import TranslationWorld, make_translation_world

if TYPE_CHECKING:
    import torch

# How long an example takes says nothing on machines that do something else as well.
settings.register_profile("any machine", deadline=None, max_examples=40)
settings.load_profile("any machine")

# A leak fails a test and not a machine. So much may each process allocate, those that tests start too; what it maps
# from files or only reserves, as CUDA does, does not count.
MEMORY_LIMIT = 6 << 30
soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
if soft == resource.RLIM_INFINITY or soft > MEMORY_LIMIT:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, hard))

# Who starts the tests in the background has them ignore these, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Hundreds of processes would compile the package, each for itself.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"


# Folders and files of tests that run whole examples, or the pages of the documentation, as a reader would.
EXAMPLES = ("examples", "test_guides.py")
# Those that import fairseq. Others start it: their tests ask for one of the fixtures.
FAIRSEQ = ("plugin", "scripts")
STARTING = {"shell", "beside_fairseq"}
# What takes longest comes first, so that no process is left with a long file when the others have ended.
FIRST = ("test_guides.py", "examples", "plugin", "scripts", "cli", "torture")

if importlib.util.find_spec("fairseq") is None:  # the tests of what does without it remain
    collect_ignore = [*FAIRSEQ, *EXAMPLES, "cli", "torture/test_kills.py"]


@pytest.fixture(autouse=True)
def _logging_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """Scripts that run in this process turn it off for all that comes after them. Imports turn on DEBUG."""
    root, level = logging.getLogger(), logging.getLogger().level
    root.setLevel(logging.WARNING if request.node.get_closest_marker("unit") else max(level, logging.INFO))
    yield
    logging.disable(logging.NOTSET)
    root.setLevel(level)


def pytest_configure(config: pytest.Config) -> None:
    """One folder of a run, and of all its processes, for what quick_composition.py keeps."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp()
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(FOLDER)))


def top(item: pytest.Item) -> str:
    """The folder of `tests`, or of `research/tests`, that the test is in, or its file."""
    place = item.path.relative_to(ROOT).parts
    return place[place.index("tests") + 1]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test `unit`, `fairseq` or `example`, the slowest first, and skip those whose real data is absent.

    `@pytest.mark.real_data("ud-french-gsd-1.4")` needs that folder of ../shared/data. Tests marked `slow` are left out
    unless -m names them.
    """
    if "slow" not in config.getoption("markexpr"):
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]
    for item in items:
        place = top(item)
        if place in EXAMPLES:
            item.add_marker("example")
        elif place in FAIRSEQ or STARTING & set(getattr(item, "fixturenames", ())):
            item.add_marker("fairseq")
        else:
            item.add_marker("unit")
        for marker in item.iter_markers("real_data"):
            absent = [name for name in marker.args if not (SHARED_DATA / name).exists()]
            if absent or not SHARED_DATA.is_dir():
                missing = ", ".join(f"../shared/data/{name}" for name in absent) or "../shared/data"
                item.add_marker(pytest.mark.skip(reason=f"real data is absent: {missing}"))
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: FIRST.index(top(item)) if top(item) in FIRST else len(FIRST))


def pytest_collection_finish() -> None:
    """Thousands of modules and tests stay until the end: the garbage collector need not look through them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def gpu() -> torch.device:
    """A GPU; what asks for one is skipped where there is none."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU that torch can use")
    return torch.device("cuda")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The data beside the project; for tests marked `real_data`."""
    return SHARED_DATA


@pytest.fixture(scope="session")
def shell() -> Iterator[Shell]:
    """Runs fairseq's commands, and ours, each in a process of its own."""
    commands = Shell()
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def beside_fairseq() -> Iterator[Shell]:
    """Runs commands and programs, each in a process of its own that has imported fairseq, and nothing of ours."""
    pytest.importorskip("fairseq")
    commands = Shell("fairseq", "fairseq_cli.train", "fairseq_cli.eval_lm", "torch._dynamo", "pydantic")
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def quick_commands(shell: Shell) -> dict[str, str]:
    """Variables under which scripts of bash run the same commands without their imports (quick_commands.py)."""
    return shell.for_scripts()


@pytest.fixture(scope="session")
def world(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Data and priors of the tiny language."""
    return World(own_copy(tmp_path_factory, "world", lambda place: make_world(place, shell)))


@pytest.fixture(scope="session")
def translation(shell: Shell, world: World, tmp_path_factory: pytest.TempPathFactory) -> TranslationWorld:
    """Data and priors of the tiny language, to translate into."""
    place = own_copy(tmp_path_factory, "translation", lambda place: make_translation_world(place, world, shell))
    return TranslationWorld(place, world)


@pytest.fixture(scope="session")
def evidence(shell: Shell, world: World, tmp_path_factory: pytest.TempPathFactory) -> EvidenceWorld:
    """Data and priors of the tiny language with numbers, names and unknown words."""
    return EvidenceWorld(own_copy(tmp_path_factory, "evidence", lambda place: make_evidence_world(place, world, shell)))
