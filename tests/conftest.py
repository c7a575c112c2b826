"""What all tests share: one thread per process, and skipping where the data beside the project is absent."""

from __future__ import annotations

import os

# Before torch is imported: on a small machine threads of many small operators only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Iterator
from pathlib import Path

import pytest
from evidence_world import EvidenceWorld, make_evidence_world
from host_commands import HostCommands
from hypothesis import settings
from tiny_world import World, make_world
from translation_world import TranslationWorld, make_translation_world

# How long an example takes says nothing on machines that do something else as well.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`@pytest.mark.real_data("ud-french-gsd-1.4")` needs that folder of ../shared/data."""
    for item in items:
        for marker in item.iter_markers("real_data"):
            absent = [name for name in marker.args if not (SHARED_DATA / name).exists()]
            if absent or not SHARED_DATA.is_dir():
                missing = ", ".join(f"../shared/data/{name}" for name in absent) or "../shared/data"
                item.add_marker(pytest.mark.skip(reason=f"real data is absent: {missing}"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The data beside the project; for tests marked `real_data`."""
    return SHARED_DATA


@pytest.fixture(scope="session")
def host() -> Iterator[HostCommands]:
    """Runs fairseq's commands, and ours, each in a process of its own."""
    commands = HostCommands()
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def world(host: HostCommands, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Data and priors of the tiny language."""
    return make_world(tmp_path_factory.mktemp("world"), host)


@pytest.fixture(scope="session")
def translation(host: HostCommands, world: World, tmp_path_factory: pytest.TempPathFactory) -> TranslationWorld:
    """Data and priors of the tiny language, to translate into."""
    return make_translation_world(tmp_path_factory.mktemp("translation"), world, host)


@pytest.fixture(scope="session")
def evidence(host: HostCommands, world: World, tmp_path_factory: pytest.TempPathFactory) -> EvidenceWorld:
    """Data and priors of the tiny language with numbers, names and unknown words."""
    return make_evidence_world(tmp_path_factory.mktemp("evidence"), world, host)
