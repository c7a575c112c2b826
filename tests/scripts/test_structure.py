"""scripts/structure.py: lines of code as its head defines them, and a table of what a batch passes through."""

import json
import sys
from pathlib import Path

import pytest
from example_modules import SCRIPTS, load

(structure,) = load(SCRIPTS, "structure")
SOURCE = '''"""A module.

Of three lines."""

import os  # a comment behind code


# a comment
class Thing:
    """Docstring."""

    def short(self) -> str:
        """Says little."""
        return os.sep

    def long(self) -> int:
        a = """a text,
no docstring"""
        b = len(a)

        return b
'''


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    kept = [line for i, line in enumerate(SOURCE.splitlines(), 1) if i in structure.code_lines(SOURCE)]
    assert kept[0].startswith("import os") and kept[-1].strip() == "return b"
    assert len(kept) == 9 and not any("Docstring" in line or line.strip() == "# a comment" for line in kept)
    assert sorted(structure.functions(SOURCE)) == [1, 4]


HOOKS = '''
class Base:
    size: int  # a declaration
    once = twice = None
    limit: ClassVar[int]

    def start(self):
        """Must be defined."""
        raise NotImplementedError

    def step(self, x):
        return x

    def end(self):
        return self.once  # has an effect


class First(Base):
    size, once, twice, limit = 1, 2, 3, 4

    def start(self):
        return 0

    def end(self):
        return 1


class Second(package.First):
    def __init__(self):
        self.twice = 5

    def step(self, x):
        once = x
        return once


class Interface(Protocol):
    def alone(self): ...


class User(Interface):
    def alone(self):
        return 0
'''


def test_hooks_with_one_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    monkeypatch.setattr(structure, "CODE", (tmp_path / "code",))
    for folder, source in (("code", HOOKS), ("examples", "class Third(Base):\n    limit = 2\n\n    alone = 1\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").write_text(source)
    base = ["Base.once: First", "Base.start: First", "Base.step: Second"]
    assert structure.hooks_with_one_user() == [*base, "First.twice: Second"]


@pytest.mark.slow
def test_the_table_has_every_measurement(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = structure.sizes
    monkeypatch.setattr(structure, "sizes", lambda folder: sizes(SCRIPTS))  # all tests take many seconds
    monkeypatch.setattr(structure, "outside_systems", lambda folder: [])
    monkeypatch.setattr(sys, "argv", ["structure.py", "--json"])
    assert structure.main() == 0
    found = json.loads(capsys.readouterr().out)
    plain, rich = (found[f"batch, {name}"] for name in structure.SETTINGS)
    assert 5 < plain["files"] < rich["files"] and plain["functions"] < rich["functions"] <= rich["calls"]
    assert plain["files"] <= found["imports"]["modules of a plain translator"] <= 150  # of over 500: what is not chosen
    assert 0 < found["prior of eight words"]["calls"] < 1_500  # 870 when this was written
    assert 0 < found["hooks"]["with one user"] < 45
    assert "| search step, unigram | files: " in structure.table(found)
