#!/usr/bin/env python3
"""Measure how plain the pages and docstrings are, and fail if one of them is over a limit.

    python scripts/check_pages.py

The table has a row for each group of pages and one for the docstrings of the package: words, mean words of a sentence,
percentage of sentences over 30 words, and verbs of speech, semicolons and calques per 1,000 words. Code blocks, tables
and headings do not count. Generated pages and the changelog are left out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEECH = re.compile(r"\b(says?|said|knows?|known|tells?|told|asks?|asked|wants?|hears?|speaks?|refuses?)\b")
CALQUE = re.compile(r"\b(beside|besides|anew|behind|in the place of|likewise|thereby|hereby)\b")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
SECTION = re.compile(r"^(?:Args|Attributes|Raises|Returns|Yields):\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)
GROUPS = {  # patterns of the pages, and the most words of one page
    "README": (("README.md",), 1000),
    "tutorials": (("docs/tutorials/*.md",), 900),
    "guides": (("docs/guides/*.md", "docs/[citr]*.md", "examples/README.md"), 1500),
    "design": (("docs/design.md",), 2500),
    "contributing": (("CONTRIBUTING.md",), 900),
    "results": (("docs/results/*.md",), 2500),
    "examples and systems": (
        ("examples/*/README.md", "fairseq_llrnn/systems/*/README.md", "research/**/README.md"), 300
    ),
}
MOST_WORDS, LONGEST_LINE = 45_000, 100
LIMITS = {"mean": 16.0, "over 30": 4.0, "speech": 3.0, ";": 3.0, "calques": 1.0}  # of each group of pages
LIMITS_OF_DOCSTRINGS = {"mean": 14.0, "over 30": 3.0, "speech": 3.0, ";": 3.0, "calques": 1.0}


def prose(text: str) -> str:
    """Return a page without code blocks, tables, headings, link targets and comments."""
    text = re.sub(r"^(```|~~~).*?^\1|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not line.startswith(("    ", "|", "#"))]
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines))
    text = re.sub(r"`[^`]*`", "X", text)
    return re.sub(r"^\s*([-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)


def docstring_text(text: str) -> str:
    """Return a docstring with the items of its sections as paragraphs, so that `prose` keeps them."""
    return SECTION.sub(lambda section: re.sub(r"^ {4}", "\n", section[1], flags=re.MULTILINE), f"{text}\n")


def docstrings(root: Path) -> list[str]:
    """Return the docstrings of all modules, classes and functions of both packages."""
    files = (*root.glob("fairseq_llrnn/**/*.py"), *root.glob("research/llrnn_research/**/*.py"))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(files)]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef
             | ast.FunctionDef | ast.AsyncFunctionDef)]  # fmt: skip
    return [docstring_text(text) for node in nodes if (text := ast.get_docstring(node))]


def sentences(text: str) -> list[str]:
    """Split prose at the ends of sentences. Fragments of one or two words are left out."""
    parts = (re.split(r"(?<=[.!?:])\s+(?=[A-Z(])", " ".join(part.split())) for part in re.split(r"\n\s*\n", text))
    return [sentence for part in parts for sentence in part if len(sentence.split()) > 2]


def measures(texts: list[str]) -> dict[str, float]:
    """Return the measures of a group of texts."""
    found = [sentence for text in texts for sentence in sentences(prose(text))]
    words = sum(len(sentence.split()) for sentence in found)
    whole = "\n".join(found).lower()
    return {
        "mean": words / len(found),
        "over 30": 100 * sum(len(sentence.split()) > 30 for sentence in found) / len(found),
        "speech": 1000 * len(SPEECH.findall(whole)) / words,
        ";": 1000 * whole.count(";") / words,
        "calques": 1000 * len(CALQUE.findall(whole)) / words,
    }


def word_count(text: str) -> int:
    return len(COMMENT.sub("", text).replace("|", " ").split())


def row(name: str, texts: list[str], found: dict[str, float]) -> str:
    """Return a row of the table."""
    words = sum(map(word_count, texts))
    return f"{name:<22}{len(texts):>6}{words:>8,}" + "".join(f"{value:>9.1f}" for value in found.values())


def page_problems(name: str, text: str, most: int) -> Iterator[str]:
    """Yield a line if a page has too many words, and for each line that is too long."""
    if (words := word_count(text)) > most:
        yield f"{name}: expected at most {most:,} words, found {words:,}; shorten the page"
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.startswith("```")
        is_prose = not fenced and not line.startswith(("    ", "|"))
        if is_prose and len(re.sub(r"\]\([^)]*\)", "]()", line)) > LONGEST_LINE:
            yield f"{name}:{number}: expected at most {LONGEST_LINE} characters, found {len(line)}; break it"


def style_problems(name: str, found: dict[str, float], limits: dict[str, float]) -> Iterator[str]:
    for measure, value in found.items():
        if value > limits[measure]:
            yield f"{name}: {measure}: expected at most {limits[measure]:g}, found {value:.1f}; rewrite sentences"


def problems(root: Path) -> Iterator[str]:
    """Print the table, and yield a line for each limit that is exceeded."""
    print(f"{'':<22}{'texts':>6}{'words':>8}" + "".join(f"{name:>9}" for name in LIMITS))
    all_words = 0
    for group, (patterns, most) in GROUPS.items():
        pages = {page.relative_to(root): page.read_text(encoding="utf-8") for pattern in patterns
                 for page in sorted(root.glob(pattern))}  # fmt: skip
        texts = [*pages.values()]
        found = measures(texts)
        print(row(group, texts, found))
        for name, text in pages.items():
            yield from page_problems(str(name), text, most)
        yield from style_problems(group, found, LIMITS)
        all_words += sum(map(word_count, texts))
    if all_words > MOST_WORDS:
        yield f"all pages: expected at most {MOST_WORDS:,} words, found {all_words:,}; shorten some"
    print(f"all pages: {all_words:,} words")
    texts = docstrings(root)
    found = measures(texts)
    print(row("docstrings", texts, found))
    yield from style_problems("docstrings", found, LIMITS_OF_DOCSTRINGS)


def main() -> int:
    found = list(problems(ROOT))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
