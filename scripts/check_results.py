#!/usr/bin/env python3
"""Write the figures of pages from docs/results/runs.jsonl, or check that the pages have them.

    python scripts/check_results.py [--write]

A comment at the end of a paragraph, list item or table row has an expression (scripts/ledger.py) for each of its
numbers, in order, separated by semicolons:

    | Hungarian | suffixes | 1,262 | 1,247 | 1,285 | 3 <!-- = hungarian/suffixes --> |
    Regularisation lowers perplexity by 8 %. <!-- = fall(hungarian/guessed, hungarian/regularised) -->

Numbers that were not measured, such as a width, are repeated: `<!-- = 512; french/test1 -->`. Numbers in code, headings
and targets of links need none, nor do names such as 5-gram.

--write rewrites numbers, decimals, the mark † of figures whose commit or seeds are not recorded, and in tables also
these cells: Std, Low, High, p (of the figure on the left), Seeds, Parameters, Signatures, Inputs (of the row's first
run). If figures of a row have the same metric, the best is bold, unless p is at least 0.05 or the difference is at most
the sum of the standard deviations.

A unit after a number, in the header of its column or in its row must be that of the run's metric. Figures in sentences
are not bold.

--write also draws docs/results/gains.svg and lexicons.svg (gains_picture.py, lexicon_picture.py).

A comment before a code block lists figures of the block, which prints them: `<!-- code = quickstart/test -->`. All
pages need one for each perplexity, BLEU and number of bits that a command prints.

README.md and docs/results need an expression for each number. Other pages need them for tables of scores (↑, ↓ or a
unit in the header, or a bold number), and for text with a measured figure (MEASURED in page_figures.py). Words next to
figures are checked, too (page_words.py). Without --write, the script prints a line for each difference, and exits with
status 1 if there is one. It also checks commands of pages and runs (documented_commands.py).
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import gains_picture
import lexicon_picture
from documented_commands import wrong_commands, wrong_commits
from ledger import LEDGER, MARK, LedgerError, Run, evaluate, read_ledger
from page_figures import NUMBER, blocks, comments, edits

ROOT = Path(__file__).resolve().parents[1]
STRICT = ("README.md", "docs/results/*.md")
PAGES = (*STRICT, "docs/*.md", "docs/guides/*.md", "docs/tutorials/*.md", "examples/**/README.md",
         "fairseq_llrnn/**/README.md", "research/**/README.md")  # fmt: skip
LEGEND = f"{MARK}: commit or seeds not recorded."
CODE = re.compile(r"(?:<!-- code =\s([^>]*?)\s*-->\n+)?(^```.*?^```$|(?:^ {4,}\S[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
PRINTED = re.compile(r"(?i:perplexity(?: of tokens)?|BLEU|bits per \w+):? +(\d[\d.]*\d)|(\d+\.\d+) bits per ")


def rewritten(name: str, text: str, is_strict: bool, runs: Mapping[str, Run], wrong: list[str]) -> str:
    """Return a page with the figures of the ledger, and append a line to `wrong` for each difference."""
    offsets = [0]
    for row in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(row))
    for block in reversed(list(blocks(text))):
        begin = offsets[block.line - 1]
        try:
            changes = sorted(edits(block, is_strict, runs), reverse=True)
        except LedgerError as error:
            wrong.append(f"{name}:{block.line}: {error}")
            continue
        for start, end, new in changes:
            old = block.text[start:end]
            if old != new:
                line = block.line + block.text[:start].count("\n")
                wrong.append(f"{name}:{line}: expected {new.strip() or 'nothing'}, found {old.strip() or 'nothing'}")
                text = text[: begin + start] + new + text[begin + end :]
    if MARK in text and LEGEND not in " ".join(text.split()):
        wrong.append(f"{name}: expected the sentence “{LEGEND}”, found none; add it")
    return text


def wrong_code(name: str, text: str, runs: Mapping[str, Run]) -> Iterator[str]:
    """Yield a line for each figure of a comment that its code block lacks, and for each score without a figure."""
    for block in CODE.finditer(text):
        place = f"{name}:{text[: block.start()].count(chr(10)) + 1}"
        figures: list[str] = []
        numbers = {number.replace(",", "") for number in NUMBER.findall(block[2])}
        for expression in (block[1] or "").split(";") if block[1] else ():
            try:
                figures.append(str(evaluate(expression.strip(), runs)).replace(",", ""))
            except LedgerError as error:
                yield f"{place}: {error}"
                continue
            if (figure := figures[-1]) not in numbers:
                yield f"{place}: expected {figure} ({expression.strip()}) in the code block, found none; correct it"
        for score in (score[1] or score[2] for score in PRINTED.finditer(block[2])):
            if score not in figures:
                yield f"{place}: expected {score} in a comment <!-- code = … --> before the block, found none; add it"


def uncited(texts: Mapping[str, str], runs: Mapping[str, Run]) -> Iterator[str]:
    """Yield a line for each run that no page has and that is no baseline."""
    cited = {run["baseline"] for run in runs.values()}
    for text in texts.values():
        for block in blocks(text):
            cited.update(re.findall(r"[a-z][a-z0-9/-]*", " ".join(comments(block.text))))
        for code in CODE.finditer(text):
            cited.update(re.findall(r"[a-z][a-z0-9/-]*", code[1] or ""))
    yield from (
        f"{LEDGER}: {key}: expected a page that cites it, found none; remove it" for key in runs if key not in cited
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (default: this one)")
    parser.add_argument("--write", action="store_true", help="write the figures to the pages")
    args = parser.parse_args()
    try:
        runs = read_ledger(args.root / LEDGER)
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
    strict = {path for pattern in STRICT for path in args.root.glob(pattern)}
    paths = dict.fromkeys(path for pattern in PAGES for path in sorted(args.root.glob(pattern)))
    pages = {str(path.relative_to(args.root)): path for path in paths}
    texts = {name: path.read_text("utf-8") for name, path in pages.items()}
    wrong: list[str] = []
    for name, text in texts.items():
        found: list[str] = []
        new = rewritten(name, text, pages[name] in strict, runs, found)
        if args.write and new != text:
            pages[name].write_text(new, "utf-8")
            found.clear()
            rewritten(name, new, pages[name] in strict, runs, found)
        wrong += [*reversed(found), *wrong_code(name, new, runs)]
    for module in (gains_picture, lexicon_picture):
        picture = args.root / module.PICTURE
        if args.write:
            picture.write_text(module.drawn(runs), "utf-8")
        elif not picture.is_file() or picture.read_text("utf-8") != module.drawn(runs):
            place = module.PICTURE
            wrong.append(f"{place}: expected the figures of the ledger, found others; run the script with --write")
    wrong += uncited(texts, runs)
    wrong += [*wrong_commands(args.root, runs.values()), *wrong_commits(args.root, runs.values())]
    print(
        "\n".join(wrong) or f"the pages have the figures of {len(runs)} runs", file=sys.stderr if wrong else sys.stdout
    )
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
