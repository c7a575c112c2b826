"""The examples, and scripts: files outside the package, run as users do, or imported by plain names as they import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from shell import Result, run_script

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, SCRIPTS = ROOT / "examples", ROOT / "scripts"
BENCH = SCRIPTS / "bench"
OF_RESEARCH = ROOT / "research" / "examples"


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


def run_example(
    script: str | Path, *arguments: object, cwd: Path = ROOT, code: int = 0, variables: Mapping[str, str] | None = None
) -> Result:
    """Run a script of an example as a user does, in a process of its own; fail, with what it wrote, unless it exits so.

    Args:
        script: its path, or its path below `examples`, of bash or Python.
        arguments: what follows it on the command line.
        cwd: where the user stands.
        code: the exit status that is expected.
        variables: what is set in the environment, as in `EPOCHS=2 bash examples/…`.
    """
    program = sys.executable if str(script).endswith(".py") else "bash"
    return run_script(program, EXAMPLES / script, *arguments, cwd=cwd, code=code, variables=variables)
