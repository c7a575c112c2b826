"""`scripts/setup.sh` up to the environment: which Python it takes. The rest needs the network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from example_modules import SCRIPTS

BASE = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
OTHER = 'case "$2" in *base_prefix*) echo /other 3 12 1;; venv) echo "$@" >&2; exit 1;; *) exit 0;; esac'
OLD = 'case "$1" in --version) echo Python 3.10.2;; *) exit 1;; esac'


def setup(venv: Path, python: str, path: str) -> str:
    """Return the output of a run that ends before it installs packages, because there is no C++ compiler."""
    variables = {"PATH": path, "HOME": str(venv.parent), "PYTHON": python, "CXX": "no-compiler"}
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run([bash, SCRIPTS / "setup.sh", venv], env=variables, capture_output=True, text=True)
    assert done.returncode == 1
    return done.stdout + done.stderr


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH without Python and compilers."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "dirname").symlink_to(str(shutil.which("dirname")))
    return tmp_path / "tools"


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_no_python_is_found(tools: Path, tmp_path: Path) -> None:
    message = "setup: error: Python 3.11, 3.12 or 3.13 was not found in PATH, pyenv and uv. Install one, for example: "
    assert setup(tmp_path / "venv", "", str(tools)).startswith(message)


def test_a_python_of_another_version_or_none(tools: Path, tmp_path: Path) -> None:
    rule = "expected Python 3.11, 3.12 or 3.13"
    old = program(tmp_path / "old python", OLD)
    for python, found in (("python3.12", "no Python"), (old, "Python 3.10.2")):
        message = f"setup: error: PYTHON={python}: {rule}, found {found}; choose another, or leave PYTHON out\n"
        assert setup(tmp_path / "venv", python, str(tools)) == message


def test_the_environment_of_another_python_is_replaced(tools: Path, tmp_path: Path) -> None:
    venv, other = tmp_path / "venv", program(tmp_path / "other python", OTHER)
    (venv / "bin").mkdir(parents=True)
    program(venv / "bin" / "python", f'exec {BASE} "$@"')
    for kept in ("", BASE):
        assert setup(venv, kept, str(tools)).startswith("setup: error: a C++ compiler is needed")
    lines = setup(venv, other, str(tools)).splitlines()
    assert lines[0] == f"setup: making {venv} with {other}" and f"-m venv --clear {venv}" in lines
