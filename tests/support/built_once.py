"""Folders that are costly to fill: one process of a run of pytest fills them, and each of the others gets a copy.

Each has one of its own, because tests put more files beside those that they find.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def own_copy(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], object]) -> Path:
    """A folder of this process with what `fill(folder)` puts into it.

    Args:
        name: under which the processes of `pytest -n` find what the first of them made.
    """
    own = factory.mktemp(name)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        fill(own)
        return own
    shared = factory.getbasetemp().parent / name
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            unfinished = Path(f"{shared}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)  # of a process that failed
            unfinished.mkdir()
            fill(unfinished)
            unfinished.rename(shared)
    return shutil.copytree(shared, own, dirs_exist_ok=True)
