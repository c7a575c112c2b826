"""What a system offers is found by its files, and its folder can be deleted."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_llrnn import registry

SYSTEMS = sorted(path.name for path in (registry.PACKAGE / "systems").iterdir() if (path / "README.md").exists())
EVERYTHING = """
import importlib, pkgutil
import fairseq_llrnn
from fairseq_llrnn.cli.main import overview
assert "prior" in overview()
fairseq_llrnn.register()
for module in pkgutil.walk_packages(fairseq_llrnn.__path__, "fairseq_llrnn."):
    importlib.import_module(module.name)
print(fairseq_llrnn.__path__[0])
"""


def test_commands_and_plugins_are_found_by_their_files(tmp_path: Path) -> None:
    for name in ("one/plugin.py", "one/commands/__init__.py", "one/commands/a_b.py", "two/plugin/__init__.py",
                 "two/plugin/task.py", "two/commands/c.py", "two/math.py", "three/README.md"):  # fmt: skip
        file = tmp_path / "systems" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("raise SystemExit('imported')\n", encoding="utf-8")
    start = "fairseq_llrnn.systems."
    assert registry.names("commands", tmp_path) == {"a-b": f"{start}one.commands.a_b", "c": f"{start}two.commands.c"}
    assert registry.names("plugins", tmp_path) == {"one": f"{start}one.plugin", "two": f"{start}two.plugin"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_without_an_extra_all_else_is_as_before(name: str, root: Path, tmp_path: Path) -> None:
    pytest.importorskip("fairseq")
    left_out = shutil.ignore_patterns("__pycache__", name)
    shutil.copytree(root / "fairseq_llrnn", tmp_path / "fairseq_llrnn", ignore=left_out)
    assert not (tmp_path / "fairseq_llrnn" / "systems" / name).exists()
    done = subprocess.run([sys.executable, "-c", EVERYTHING], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "fairseq_llrnn")
