"""Pages and docstrings are short and plain (scripts/check_pages.py)."""

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
    ("word " * 1001, "README.md: expected at most 1,000 words, found 1,001; shorten the page"),
    ("a " * 51, "README.md:1: expected at most 100 characters, found 102; break it"),
    ("The program says so.", "README: speech: expected at most 3, found 250.0; rewrite sentences"),
    ("It is short; and plain; and clear.", "README: ;: expected at most 3, found 285.7; rewrite sentences"),
])  # fmt: skip
def test_a_page_over_a_limit_is_named(text: str, problem: str, tree: Path) -> None:
    (tree / "README.md").write_text(text)
    assert problem in list(check_pages.problems(tree))


def test_sections_of_docstrings_count(tree: Path) -> None:
    docstring = "Return x.\n\n    Args:\n        x: a value; it says; it knows.\n\n        code; code"
    source = f'def f(x):\n    """{docstring}\n    """\n'
    (tree / "fairseq_llrnn" / "files.py").write_text(source)
    (text,) = check_pages.docstrings(tree)
    assert "x: a value; it says; it knows." in check_pages.prose(text)
    assert "docstrings: speech: expected at most 3, found 285.7; rewrite sentences" in list(check_pages.problems(tree))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project with a page in each group, and a module."""
    pages = ["README.md", "CONTRIBUTING.md", "docs/design.md"]
    pages += [f"{folder}/README.md" for folder in ("docs/tutorials", "docs/guides", "docs/results", "examples/one")]
    for page in pages:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text(PLAIN)
    (tmp_path / "fairseq_llrnn").mkdir()
    (tmp_path / "fairseq_llrnn" / "files.py").write_text('"""Read files line by line."""\n')
    return tmp_path
