"""Find the figures of pages, and what the ledger has in their place.

A *block* is a paragraph, a list item or a row of a table. Its comment `<!-- = … -->` has an expression (ledger.py) for
each of its numbers, in order, separated by semicolons. A row has further cells that follow from its runs: OF_FIGURE and
OF_ROW.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from ledger import MARK, Figure, LedgerError, Run, entry, evaluate
from page_words import check_header, check_literal, check_names

EXPRESSIONS = re.compile(r"<!-- =\s(.*?)\s*-->", re.DOTALL)
HIDDEN = re.compile(
    r"<!--.*?-->|`[^`]*`|(?<=\])\([^)]*\)|<[a-z/][^>]*>|https?://\S+|\A\s*\d+\.(?= )|\b\d{4}-\d\d-\d\d\b", re.DOTALL
)
NUMBER = re.compile(rf"(?<![\w.])[-−+]?(?>\d+(?:,\d{{3}})*(?:\.\d+)*)(?!\w|-[a-zA-Z]){MARK}?")
WHOLE = re.compile(rf"\**({NUMBER.pattern})\**{MARK}?")
START = re.compile(r"\s*[-*] |\||\s*1\. ")  # of a list item or a row
UNITS = "%|nats|bits|BLEU|points|ms|µs|seconds|minutes|hours|MB|GB|MiB|GiB|times (?:as|the|that|with|more|less|\\w+er)"
MEASURED = re.compile(rf"\d[\d.,]*{MARK}?\s(?:{UNITS})(?!\w)|(?i:perplexity|accuracy|BLEU) (?:\w+ ){{0,2}}?\d")
SCORE = re.compile(r"[↑↓]|(?i:\bperplexity|\bBLEU|\bbits/)")  # in the header of a table
UNIT = re.compile(r"%|(?i:perplexity)|\b(?:nats|bits|BLEU|points|s|ms|µs|MB|GB|MiB|GiB|tokens/s|ratio)\b")
NAMES_OF_UNITS = {"milliseconds": "ms", "microseconds": "µs", "seconds": "s", "times": "ratio"}
UNIT_NAME = re.compile(rf"\b(?:{'|'.join(NAMES_OF_UNITS)})\b")
GLUED = re.compile(r"(?<![\w.])\d[\d.,]*(?:[xk×]|[eE]\d+|-fold|-times)(?!\w)|[¼½¾⅓⅔]")  # figures that no NUMBER is
BOLD = re.compile(rf"\*\*{NUMBER.pattern}\*\*")
OF_FIGURE = {"std": "std", "low": "low", "high": "high", "p": "p"}
OF_ROW = {
    "seeds": "n",
    "parameters": "parameters",
    "signatures": "signatures",
    "inputs": "inputs",
    "inputs tried": "inputs",
}
DIRECTIONS = {"↑": "higher", "↓": "lower"}


@dataclass
class Block:
    """A paragraph, list item or table row, from its first line on. `header` has the cells of the table's header."""

    line: int
    text: str
    header: Sequence[str] = ()
    is_header: bool = False


class Edit(NamedTuple):
    start: int
    end: int
    text: str


@dataclass
class Shown:
    """A figure in a cell of its own."""

    start: int
    end: int
    figure: Figure
    is_bold: bool = False


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page that may have figures. Code and headings have none."""
    block: Block | None = None
    header: list[str] | None = None
    is_fenced = was_blank = False
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        is_fence = line.lstrip().startswith("```")
        is_code = is_fence or is_fenced or (was_blank and line.startswith("    "))
        is_fenced ^= is_fence
        was_blank = not line.strip() or is_code
        is_row = line.startswith("|") and not is_code
        if block and (was_blank or line.startswith("#") or START.match(line)):
            yield block
            block = None
        if is_row:
            if header is None:
                header = [text for _, _, text in cells(line)]
                yield Block(number, line, header, is_header=True)
            else:
                yield Block(number, line, header)
            continue
        header = None
        if block:
            block.text += line
        elif not was_blank and not line.startswith("#"):
            block = Block(number, line)
    if block:
        yield block


def cells(line: str) -> list[tuple[int, int, str]]:
    """Return start, end and text of the cells of a row."""
    bars = [bar.start() for bar in re.finditer(r"(?<!\\)\|", masked(line))]
    return [(a + 1, b, EXPRESSIONS.sub("", line[a + 1 : b]).strip()) for a, b in zip(bars, bars[1:], strict=False)]


def masked(text: str) -> str:
    """Return a text with spaces instead of the parts whose numbers are no figures."""
    return HIDDEN.sub(lambda part: " " * len(part[0]), text)


def comments(text: str) -> list[str]:
    """Return the expressions of the comments of a text, those in code aside."""
    parts = [EXPRESSIONS.fullmatch(part[0]) for part in HIDDEN.finditer(text)]
    return [expression.strip() for part in parts if part for expression in part[1].split(";")]


def edits(block: Block, is_strict: bool, runs: Mapping[str, Run]) -> Iterator[Edit]:
    """Yield the numbers and cells of a block with what the ledger has. It raises LedgerError if that is not clear."""
    shown = masked(block.text)
    columns = [] if block.is_header or not block.header else cells(block.text)
    if columns and len(columns) != len(block.header):
        raise LedgerError(f"expected {len(block.header)} cells in the row, found {len(columns)}; correct it")
    figures = [evaluate(expression, runs) for expression in comments(block.text)]
    derived = {}
    if columns and any(figure.run for figure in figures):
        names = enumerate(map(str.lower, block.header))
        derived = {index: name for index, name in names if name in OF_FIGURE | OF_ROW}
    numbers = [number for number in NUMBER.finditer(shown)
               if not any(columns[index][0] <= number.start() < columns[index][1] for index in derived)]  # fmt: skip
    found = "; ".join(number[0].rstrip(MARK) for number in numbers)
    if is_strict and (glued := GLUED.search(shown)):
        raise LedgerError(f"expected a plain number, found {glued[0]}; write it like 5 times or 5,000")
    if not figures:
        is_measured = MEASURED.search(shown)
        if block.header:
            is_measured = BOLD.search(shown) or SCORE.search(" ".join(block.header))
        if numbers and (is_strict or is_measured):
            raise LedgerError(f"expected a comment <!-- = … --> with expressions for {found}, found none; add it")
        return
    if len(numbers) != len(figures):
        raise LedgerError(
            f"expected an expression for each of {len(numbers)} numbers ({found}), found {len(figures)}; correct the "
            "comment or the text"
        )
    whole = dict(whole_cells(columns, numbers, figures))
    in_cells = [text for _, _, text in columns]
    check_names(in_cells, block.header if columns else (), shown, ";".join(comments(block.text)), runs)
    for number, figure in zip(numbers, figures, strict=True):
        if not any(cell.figure is figure for cell in whole.values()):
            sign = "+" if number[0].startswith("+") and not str(figure).startswith("+") else ""
            start, end = number.span()
            check_unit(shown[end:].split(maxsplit=1)[:1], figure)
            if is_strict:
                check_literal(" ".join(shown[:start].split()) + " ", shown[end:], figure)
            if shown[:start].endswith("**") and shown.startswith("**", end):
                start, end = start - 2, end + 2
            yield Edit(start, end, f"{sign}{figure}{MARK * figure.is_marked}")
    make_bold([cell for cell in whole.values() if cell.figure.run])
    for index, cell in whole.items():
        texts = [block.header[index], " ".join(text for _, _, text in columns)]
        check_header(block.header[index], cell.figure)
        check_direction(texts, cell.figure)
        check_unit(texts, cell.figure)
        stars = "**" * cell.is_bold
        yield Edit(cell.start, cell.end, f"{stars}{cell.figure}{stars}{MARK * cell.figure.is_marked}")
    yield from derived_cells(block.text, columns, derived, whole, figures, runs)


def whole_cells(
    columns: list[tuple[int, int, str]], numbers: list[re.Match[str]], figures: list[Figure]
) -> Iterator[tuple[int, Shown]]:
    """Yield (column, figure) of each cell that has nothing but a number."""
    for number, figure in zip(numbers, figures, strict=True):
        for index, (start, end, text) in enumerate(columns):
            if start <= number.start() < end and WHOLE.fullmatch(text):
                begin = start + 1
                yield index, Shown(begin, begin + len(text), figure)


def derived_cells(
    text: str,
    columns: list[tuple[int, int, str]],
    derived: Mapping[int, str],
    whole: Mapping[int, Shown],
    figures: list[Figure],
    runs: Mapping[str, Run],
) -> Iterator[Edit]:
    """Yield the cells that have an entry of a run in another cell."""
    in_row = [figure.run for figure in figures if figure.run]
    for index, name in derived.items():
        on_left = [cell.figure.run for column, cell in sorted(whole.items()) if column < index and cell.figure.run]
        found = on_left[-1:] if name in OF_FIGURE else in_row[:1]
        rivals = {run["key"] for run in in_row if run["metric"] == found[0]["metric"]} if found else set()
        if name == "p" and len(rivals) > 1 and found[0]["baseline"] not in rivals:
            found = []  # p is of another comparison
        entry_name = (OF_FIGURE | OF_ROW)[name]
        known = [run for run in found if entry_name in run or (entry_name == "n" and isinstance(run["seeds"], list))]
        content = "".join(f" {entry(run['key'] + '.' + entry_name, runs)} " for run in known) or " "
        start, end, _ = columns[index]
        comment = EXPRESSIONS.search(text, start, end)
        yield Edit(start, comment.start() if comment else end, content)


def check_direction(texts: Sequence[str], figure: Figure) -> None:
    """Raise LedgerError if the arrow of the column, or else of the row, is not that of the run."""
    arrows = [arrow for text in texts for arrow in DIRECTIONS if arrow in text]
    if figure.run and arrows and figure.run["better"] not in (DIRECTIONS[arrows[0]], "neither"):
        raise LedgerError(f"expected a run for which {DIRECTIONS[arrows[0]]} is better, found {figure.run['key']}")


def check_unit(texts: Sequence[str], figure: Figure) -> None:
    """Raise LedgerError if the first of the texts that names a unit names none of the figure's metric."""
    known = units_of(figure.metric)
    shown = next(filter(None, map(units_of, texts)), known)
    if known and not known & shown and not ("%" in known and "points" in shown):
        raise LedgerError(f"expected {figure} in {' or '.join(sorted(known))}, found {' or '.join(sorted(shown))}")


def units_of(text: str) -> set[str]:
    return {unit.lower() for unit in UNIT.findall(UNIT_NAME.sub(lambda name: NAMES_OF_UNITS[name[0]], text))}


def make_bold(row: list[Shown]) -> None:
    """Make the best of the figures of a row bold that have the same metric, unless the difference may be noise.

    It may be noise if it is within the standard deviations, if p is 0.05 or more, or if one of both has a single seed.
    """
    metrics = Counter(cell.figure.run["metric"] for cell in row if cell.figure.run)
    for metric in (metric for metric, count in metrics.items() if count > 1):
        rivals = [cell for cell in row if cell.figure.run and cell.figure.run["metric"] == metric]
        better = rivals[0].figure.run["better"] if rivals[0].figure.run else "neither"
        rivals.sort(key=lambda cell: cell.figure.value, reverse=better == "higher")
        best, second = (cell.figure.run or {} for cell in rivals[:2])
        spreads = [spread(run) for run in (best, second)]
        has_chance = None in spreads or any(run.get("p", Decimal()) >= Decimal("0.05") for run in (best, second))
        is_clear = not has_chance and abs(best["value"] - second["value"]) > sum(filter(None, spreads))
        rivals[0].is_bold = is_clear and better != "neither"


def spread(run: Run) -> Decimal | None:
    """Return the deviation of a run, 0 if chance has no part in it, or None for a single seed."""
    if run["seeds"] == "none":
        return Decimal()
    if len(run["seeds"]) == 1:
        return None
    if "low" in run and "std" not in run:
        return Decimal(run["high"] - run["low"]) / 2
    return run.get("std")
