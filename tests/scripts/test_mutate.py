"""scripts/mutate.py: what it changes, what it draws, and how many mutations the tests of head and output catch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from example_modules import SCRIPTS, load

SOURCE = '''"""Docstring 3."""
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import math

LIMIT: int = 4


class Rule(Protocol):
    size: int = 7


def part(values: list[int], k: int = 2) -> int:
    """Another 5."""
    if k < 0 and not values:
        raise ValueError(f"k {k + 1}")
    first = values[-1] + values[k:][0]
    values.sort()
    return abs(first)
'''
EXPECTED = {
    "LIMIT: int = 4": ["LIMIT: int = 5", "LIMIT: int = 8"],
    "def part(values: list[int], k: int = 2) -> int:": ["k: int = 3", "k: int = 4"],
    "if k < 0 and not values:": [
        "if True:", "if False:", "if k <= 0", "0 or not", "if ((k < 0)):", "if ((not values)):", "and (values)",
        "k < 1",
    ],
    'raise ValueError(f"k {k + 1}")': ["pass"],
    "first = values[-1] + values[k:][0]": ["[-2]", "] - values", "= (values[-1])", "= (values[k:][0])", "[:]", "][1]"],
    "values.sort()": ["pass"],
    "return abs(first)": ["return (first)"],
}  # fmt: skip


@pytest.fixture(scope="module")
def mutate() -> tuple[ModuleType, ModuleType]:
    modules = load(SCRIPTS, "mutate_source", "mutate")
    return modules[0], modules[1]


def test_each_line_has_the_expected_mutations(mutate: tuple[ModuleType, ModuleType], tmp_path: Path) -> None:
    path = tmp_path / "rule.py"
    path.write_text(SOURCE, encoding="utf-8")
    found: dict[str, list[str]] = {}
    for mutation in mutate[0].mutations_of(path):
        before, after = mutation.before_and_after()
        assert mutation.is_python() and SOURCE.splitlines()[mutation.line - 1].strip() == before
        assert mutation.function == ("" if "LIMIT" in before else "part")
        found.setdefault(before, []).append(after)
    assert path.read_text(encoding="utf-8") == SOURCE
    missing = [part for line, parts in EXPECTED.items() for part in parts if not any(part in f for f in found[line])]
    assert found.keys() == EXPECTED.keys() and not missing, found


def test_a_seed_names_its_mutations(mutate: tuple[ModuleType, ModuleType]) -> None:
    reasons = mutate[1].read_reasons()
    drawn = mutate[1].draw(3, 30, reasons)
    assert drawn == mutate[1].draw(3, 30, reasons) != mutate[1].draw(4, 30, reasons)
    assert len({(each.path, each.start, each.text) for each in drawn}) == 30
    assert not any(reason.matches(mutation) for reason in reasons for mutation in drawn)


def test_each_reason_is_of_a_mutation(mutate: tuple[ModuleType, ModuleType]) -> None:
    """A reason whose line was changed is removed, or changed too."""
    mutations = [each for path in mutate[1].sources() for each in mutate[0].mutations_of(path)]
    unused = [reason for reason in mutate[1].read_reasons() if not any(map(reason.matches, mutations))]
    assert not unused, f"scripts/mutations_without_effect.tsv: no such mutation: {unused}"
    assert all(reason.reason for reason in mutate[1].read_reasons())


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_tests_catch_38_of_40_mutations(root: Path) -> None:
    command = [sys.executable, root / "scripts" / "mutate.py", "--seed", "1", "--count", "40", "--least", "38"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
