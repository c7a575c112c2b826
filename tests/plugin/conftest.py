"""Once a session: the server of host commands, the tiny world, and a model trained in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from host_commands import HostCommands
from tiny_world import World, make_world


@pytest.fixture(scope="session")
def host() -> Iterator[HostCommands]:
    """Runs the host's commands."""
    commands = HostCommands()
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def world(host: HostCommands, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Data and priors."""
    return make_world(tmp_path_factory.mktemp("world"), host)


@pytest.fixture(scope="session")
def trained(host: HostCommands, world: World) -> Path:
    """The folder of a model that fairseq-train trained for two epochs: checkpoint_best.pt and checkpoint_last.pt."""
    place = world.place / "trained"
    host.run("fairseq-train", *world.train_args(save_dir=place), "--max-epoch", 2)
    return place
