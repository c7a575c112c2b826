"""Extras of pyproject.toml, and what messages and pages tell a user to install."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairseq_llrnn.errors import from_checkout

OWN_NAME = "fairseq-llrnn"
PLACES = ("README.md", "docs/**/*.md", "examples/**/*.*", "scripts/**/*.*", "fairseq_llrnn/**/*.*")
BEFORE_FAIRSEQ = {"torch", "numpy", "setuptools", "wheel", "cython"}  # fairseq is built beside them


@pytest.fixture(scope="module")
def extras(root: Path) -> dict[str, list[str]]:
    """Requirements by extra."""
    described = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = described["project"]["optional-dependencies"]
    return found


def name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def from_checkout_line(call: re.Match[str]) -> str:
    return from_checkout(call[1])


def advice(root: Path) -> Iterator[tuple[str, str]]:
    """Every `pip install …`, as far as its line goes, and where it is."""
    for pattern in PLACES:
        for file in sorted(root.glob(pattern)):
            if file.suffix in (".py", ".md", ".sh"):
                text = re.sub(r'"\n\s*f?"', "", file.read_text(encoding="utf-8"))  # a message over two lines of code
                text = re.sub(r"\{?from_checkout\('(\w+)'\)\}?", from_checkout_line, text)
                text = re.sub(r'need_library\(.*, "(\w+)"\)', from_checkout_line, text)
                for found in re.finditer(r"pip install ([^\n`;)]*)", text):
                    yield str(file.relative_to(root)), found[1]


def test_advice_names_extras_that_there_are(root: Path, extras: dict[str, list[str]]) -> None:
    named = {
        (place, extra)
        for place, text in advice(root)
        for group in re.findall(rf"(?:{OWN_NAME}|\.)\[([\w,]+)\]", text)
        for extra in group.split(",")
    }
    assert not [text for _, text in advice(root) if f"{OWN_NAME}[" in text]  # no index of packages has it
    assert {extra for _, extra in named} > {"fairseq", "metrics", "align"}
    assert sorted((place, extra) for place, extra in named if extra not in extras) == []


def test_what_an_extra_brings_is_installed_by_its_name(root: Path, extras: dict[str, list[str]]) -> None:
    """So that it comes in a version that was tried."""
    brought = {name(requirement) for group in extras.values() for requirement in group} - BEFORE_FAIRSEQ
    words = [(place, name(word.strip("'\""))) for place, text in advice(root) for word in text.split()]
    plain = [(place, word) for place, word in words if word in brought]
    assert plain == []


def test_what_two_extras_bring_is_the_same(extras: dict[str, list[str]]) -> None:
    ranges: dict[str, set[str]] = {}
    for group in extras.values():
        for requirement in group:
            ranges.setdefault(name(requirement), set()).add(requirement)
    assert [sorted(found) for found in ranges.values() if len(found) > 1] == []


def test_the_page_on_installation_names_all_extras(root: Path, extras: dict[str, list[str]]) -> None:
    text = (root / "docs" / "install.md").read_text(encoding="utf-8")
    assert [extra for extra in extras if not re.search(rf"[`\[,]{extra}[`\],]", text)] == []
