"""Check words next to the figures of pages: those that distinguish runs must be in the runs' keys or metrics.

- The header of a figure's column names the same member of CONTRASTS as the run, if it names one.
- A block that names LANGUAGES names those of its keys. A row names no others.
- A row names the system in SYSTEMS that all of its keys have.
- A sentence or column of a score has no literal, unless it is a goal.

Headings and other words are not checked.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from ledger import Figure, LedgerError, Run

LANGUAGES = frozenset(
    "armenian basque czech english french german greek hungarian latvian nahuatl swahili ukrainian welsh wolof".split()
)
CONTRASTS = (
    LANGUAGES, {"test1", "test2"}, {"test", "validation"}, {"gender", "number"}, {"seen", "unseen"},
    {"float32", "bfloat16"},
)  # fmt: skip
SYSTEMS = ("softmax", "kneser", "unigram")
KEY = re.compile(r"[a-z][a-z0-9]*(?:[/-][a-z0-9]+)+")
SCORE = re.compile(r"\s(?:nats|bits|BLEU|points)(?!\w)")
GOAL = re.compile(r"\bgoal (?:of )?$")


def words_in(text: str, group: Collection[str]) -> set[str]:
    return {word for word in group if re.search(rf"(?<![a-z0-9]){word}(?![a-z0-9])", text.lower())}


def check_header(header: str, figure: Figure) -> None:
    """Raise LedgerError if the header of a figure's column names something else than its run."""
    if figure.literal and re.search("[↑↓]", header):
        raise LedgerError(f"expected a run for {figure} in the column {header}, found a literal; name the run")
    run = figure.run or {"key": "", "metric": ""}
    for group in CONTRASTS:
        shown, known = words_in(header, group), words_in(f"{run['key']} {run['metric']}", group)
        if shown and known and not shown & known:
            raise LedgerError(f"expected {figure} in a column of {' or '.join(sorted(known))}, found {header}")


def check_literal(before: str, after: str, figure: Figure) -> None:
    """Raise LedgerError if a literal stands in a sentence as a score, and no word calls it a goal."""
    if figure.literal and (unit := SCORE.match(after)) and not GOAL.search(before):
        raise LedgerError(f"expected a run for {figure}{unit[0]}, found a literal; name the run")


def check_names(cells: Sequence[str], header: Sequence[str], text: str, comments: str, runs: Mapping[str, Run]) -> None:
    """Raise LedgerError if a block does not name the languages, or a row the system, of its runs.

    Args:
        cells, header: of a row, empty for other blocks. text: of the block, without its comments.
    """
    keys = [key for key in KEY.findall(comments) if key in runs]
    for wrong in wrong_names(keys, " ".join([*cells, *header]) or text, bool(cells)):
        raise LedgerError(wrong)


def wrong_names(keys: Sequence[str], text: str, is_row: bool) -> Iterator[str]:
    known = set().union(*(words_in(key, LANGUAGES) for key in keys))
    shown = words_in(text, LANGUAGES)
    if known and shown and not (known == shown if is_row else known <= shown):
        yield f"expected the languages {', '.join(sorted(known))} of the runs, found {', '.join(sorted(shown))}"
    for system in SYSTEMS if is_row and keys else ():
        if all(system in key for key in keys) and system not in text.lower():
            yield f"expected a row that names the {system} of its runs, found none"
