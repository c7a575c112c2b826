"""What tests of experts share."""

from pathlib import Path

import pytest
from expert_models import options
from shell import Shell
from translation_world import TranslationWorld


@pytest.fixture(scope="session")
def trained_with_expert(shell: Shell, translation: TranslationWorld, expert_file: Path) -> Path:
    place = translation.place / "with-expert"
    args = [*translation.train_args(save_dir=place), *options(expert_file, "Mirror", "Said")]
    shell.run("fairseq-train", *args, "--max-epoch", 1)
    shell.run("fairseq-train", *args, "--max-epoch", 2)
    return place / "checkpoint_last.pt"
