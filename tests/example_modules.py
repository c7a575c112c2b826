"""Modules of the examples, and scripts: files outside the package, which import their neighbours by plain names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES, SCRIPTS = ROOT / "examples", ROOT / "scripts"


def load(folder: Path, *names: str) -> list[ModuleType]:
    """Modules of a folder, as one that is run from there finds them.

    All tests share a process, so that two folders with modules of the same name would mix them up: no two have such.
    """
    for path in folder.glob("*.py"):
        found = getattr(sys.modules.get(path.stem), "__file__", str(path))
        assert found == str(path), f"{path}: there is another module of that name, {found}; rename one of them"
    sys.path.insert(0, str(folder))
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(folder))
