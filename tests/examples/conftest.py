"""Examples run without the imports of each of their commands."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick(quick_commands: dict[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in quick_commands.items():
            patch.setenv(name, value)
        patch.setattr(sys, "executable", str(Path(quick_commands["BASH_ENV"]).with_name("python")))
        yield
