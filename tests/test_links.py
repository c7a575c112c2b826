"""Links between the pages of this repository lead to files that exist, and to headings that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/README.md", "research/**/*.md")
    for page in ROOT.glob(pattern)
    if page.is_file()
)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    found = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", line.strip()).lower().replace(" ", "-") for line in found}


def broken_links(page: Path, root: Path = ROOT) -> list[str]:
    """The links of a page, inside this repository, that lead nowhere."""
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        exists = target.exists() and target.is_relative_to(root)
        if not exists or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_to_no_file_or_to_no_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One & two\n[a](#one--two) [b](#three) [c](absent.md) [d](https://a.org)\n", encoding="utf-8")
    assert broken_links(page, tmp_path) == ["#three", "absent.md"]
