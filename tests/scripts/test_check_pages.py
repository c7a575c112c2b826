"""The pages are short and plain (scripts/check_pages.py)."""

from pathlib import Path

import pytest
from example_modules import SCRIPTS, load

(check_pages,) = load(SCRIPTS, "check_pages")

PLAIN = "A prior has features. It is a folder.\n\n    code says nothing\n\n| a table; | knows |\n"


def test_the_pages_keep_their_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_pages.main() == 0, capsys.readouterr().err


def test_code_tables_and_links_do_not_count() -> None:
    assert check_pages.sentences(check_pages.prose(PLAIN + "See [the long guide](a.md), please.")) == [
        "A prior has features.", "It is a folder.", "See the long guide, please.",
    ]  # fmt: skip


@pytest.mark.parametrize("text, problem", [
    ("word " * 901, "README.md: expected at most 900 words, found 901; shorten the page"),
    ("a " * 51, "README.md:1: expected at most 100 characters, found 102; break it"),
    ("The program says so.", "README: speech: expected at most 3, found 250.0; rewrite sentences"),
    ("It is short; and plain; and clear.", "README: ;: expected at most 3, found 285.7; rewrite sentences"),
])  # fmt: skip
def test_a_page_over_a_limit_is_named(text: str, problem: str, tmp_path: Path) -> None:
    folders = ("docs/tutorials", "docs/guides", "docs/results", "examples/one", "docs")
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name in ("design.md", "README.md") if folder == "docs" else ("README.md",):
            (tmp_path / folder / name).write_text(PLAIN)
    (tmp_path / "README.md").write_text(text)
    assert problem in list(check_pages.problems(tmp_path))
