"""A language model that reads characters, with an open vocabulary, trained once."""

from pathlib import Path

import pytest
from shell import Shell
from tiny_world import World, open_prior

SMALL = ["--input-characters", "cnn", "--character-embed-dim", "4", "--character-filters", "1:3,3:5"]


@pytest.fixture(scope="session")
def opened(shell: Shell, world: World) -> str:
    return open_prior(shell, world, world.data, "open-characters")


@pytest.fixture(scope="session")
def model(shell: Shell, world: World, opened: str) -> Path:
    """Its checkpoint after two epochs."""
    place = world.place / "character-model"
    shell.run("fairseq-train", *world.train_args(opened, place), *SMALL, "--dropout", 0.2, "--max-epoch", 2)
    return place / "checkpoint_last.pt"
