"""docs/troubleshooting.md: each message that it quotes exists in the package."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = [" ".join(block.split()) for block in re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)]
GAP = "…"


def text_of(node: ast.expr) -> str | None:
    """The text of a string, with a gap for each value that it formats; None: not a string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(text_of(value) or GAP for value in node.values)


@cache
def texts_of_the_package() -> str:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "fairseq_llrnn").rglob("*.py"))
    found = (text_of(node) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.expr))
    return "\n".join(text for text in found if text is not None)


def missing_parts(message: str) -> list[str]:
    """The fixed parts of a message, between its gaps, that no string of the package has."""
    parts = (part.strip(" ;:,") for part in message.split(GAP))
    return [part for part in parts if part and part not in texts_of_the_package()]


def test_the_page_has_messages() -> None:
    assert len(MESSAGES) >= 20 and len(set(MESSAGES)) == len(MESSAGES)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_quoted_message_is_in_the_source(message: str) -> None:
    assert missing_parts(message) == []
    assert max(len(part.split()) for part in message.split(GAP)) >= 3


def test_a_message_that_is_not_in_the_source_is_found() -> None:
    found = missing_parts("expected a blue moon, found …; no such words")
    assert found == ["expected a blue moon, found", "no such words"]
