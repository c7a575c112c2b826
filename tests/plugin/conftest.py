"""A model trained in the tiny world, once a session."""

from pathlib import Path

import pytest
from host_commands import HostCommands
from tiny_world import World


@pytest.fixture(scope="session")
def trained(host: HostCommands, world: World) -> Path:
    """The folder of a model that fairseq-train trained for two epochs: checkpoint_best.pt and checkpoint_last.pt."""
    place = world.place / "trained"
    host.run("fairseq-train", *world.train_args(save_dir=place), "--max-epoch", 2)
    return place
