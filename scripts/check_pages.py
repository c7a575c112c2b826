#!/usr/bin/env python3
"""Measure how plain the pages are, and fail where a page or a group of pages is over a limit.

    python scripts/check_pages.py

The table has a row for each group of pages: words, mean words of a sentence, percentage of sentences over 30 words, and
verbs of speech, semicolons and calques per 1,000 words. Code blocks, tables and headings do not count. Generated pages
and the changelog are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEECH = re.compile(r"\b(says?|said|knows?|known|tells?|told|asks?|asked|wants?|hears?|speaks?|refuses?)\b")
CALQUE = re.compile(r"\b(beside|besides|anew|behind|in the place of|likewise|thereby|hereby)\b")
GROUPS = {  # patterns of the pages, and the most words of one page
    "README": (("README.md",), 900),
    "tutorials": (("docs/tutorials/*.md",), 900),
    "guides": (("docs/guides/*.md", "docs/[cti]*.md", "examples/README.md"), 1500),
    "design": (("docs/design.md",), 2500),
    "results": (("docs/results/*.md",), 2500),
    "examples and systems": (("examples/*/README.md", "fairseq_llrnn/systems/*/README.md"), 300),
}
MOST_WORDS, LONGEST_LINE = 46_000, 100
LIMITS = {"mean": 16.0, "over 30": 4.0, "speech": 3.0, ";": 3.0, "calques": 1.0}  # of README, tutorials and guides
LIMITED = ("README", "tutorials", "guides")


def prose(text: str) -> str:
    """Return a page without code blocks, tables, headings, link targets and comments."""
    text = re.sub(r"^(```|~~~).*?^\1|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not line.startswith(("    ", "|", "#"))]
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines))
    text = re.sub(r"`[^`]*`", "X", text)
    return re.sub(r"^\s*([-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)


def sentences(text: str) -> list[str]:
    """Split prose at the ends of sentences. Fragments of one or two words are left out."""
    parts = (re.split(r"(?<=[.!?:])\s+(?=[A-Z(])", " ".join(part.split())) for part in re.split(r"\n\s*\n", text))
    return [sentence for part in parts for sentence in part if len(sentence.split()) > 2]


def measures(texts: list[str]) -> dict[str, float]:
    """Return the measures of the pages of a group."""
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


def problems(root: Path) -> Iterator[str]:
    """Print the table, and yield a line for each limit that is exceeded."""
    print(f"{'':<22}{'pages':>6}{'words':>8}" + "".join(f"{name:>9}" for name in LIMITS))
    all_words = 0
    for group, (patterns, most) in GROUPS.items():
        pages = sorted(page for pattern in patterns for page in root.glob(pattern))
        texts = [page.read_text(encoding="utf-8") for page in pages]
        words = [len(text.replace("|", " ").split()) for text in texts]
        found, all_words = measures(texts), all_words + sum(words)
        print(f"{group:<22}{len(pages):>6}{sum(words):>8,}" + "".join(f"{value:>9.1f}" for value in found.values()))
        for page, text, count in zip(pages, texts, words, strict=True):
            name = page.relative_to(root)
            if count > most:
                yield f"{name}: expected at most {most:,} words, found {count:,}; shorten the page"
            fenced = False
            for number, line in enumerate(text.splitlines(), 1):
                fenced ^= line.startswith("```")
                is_prose = not fenced and not line.startswith(("    ", "|"))
                if is_prose and len(re.sub(r"\]\([^)]*\)", "]()", line)) > LONGEST_LINE:
                    yield f"{name}:{number}: expected at most {LONGEST_LINE} characters, found {len(line)}; break it"
        for measure, value in found.items():
            if group in LIMITED and value > LIMITS[measure]:
                yield f"{group}: {measure}: expected at most {LIMITS[measure]:g}, found {value:.1f}; rewrite sentences"
    if all_words > MOST_WORDS:
        yield f"all pages: expected at most {MOST_WORDS:,} words, found {all_words:,}; shorten some"
    print(f"all pages: {all_words:,} words")


def main() -> int:
    found = list(problems(ROOT))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
