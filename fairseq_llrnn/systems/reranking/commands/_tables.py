"""The tables of `llrnn report`, for the terminal and the page."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairseq_llrnn.cli.tables import WIDTH, columns, cut, fit_left, printable
from fairseq_llrnn.systems.reranking.agreement import Agreement
from fairseq_llrnn.systems.reranking.metrics import MetricScores
from fairseq_llrnn.systems.reranking.tallies import RuleTally, Tally

NOTHING = "–"  # a share of nothing
NAME_WIDTH, LABEL_WIDTH = 16, 32
WRONG_PAIRS = 8  # shown per system
# of tallies: title, header of the labels, and explanation
FREQUENCY = (
    "Words by training frequency", "seen in training",
    "Share of the reference's words, punctuation included, that the output has anywhere in the sentence. A word that "
    "the reference has twice must occur twice.",
)  # fmt: skip
FACTS = (
    "Gold facts", "kind", "Share of the words of each kind that the output has. Seen, unseen: in the training text."
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A table whose first column has labels.

    Attributes:
        bars: shares (rows × systems) for a plot.
        wrong_pairs: the most frequent pairs of each text, for the page.
    """

    title: str
    notes: list[str]
    head: list[str]
    rows: list[list[str]]
    bars: list[tuple[str, list[float]]] = field(default_factory=list)
    wrong_pairs: dict[str, str] = field(default_factory=dict)


def _most_often(counts: Agreement) -> str:
    pairs = sorted(counts.examples.items(), key=lambda item: (-item[1], item[0]))[:WRONG_PAIRS]
    return ", ".join(pair if count == 1 else f"{pair} (×{count:,})" for pair, count in pairs) or NOTHING


def as_text(table: Table) -> str:
    """Return a table for a terminal: first column flush left, others flush right."""
    rows = [
        [cut(printable(cell), NAME_WIDTH if i else LABEL_WIDTH) for i, cell in enumerate(row)]
        for row in (table.head, *table.rows)
    ]
    widths = [max(columns(row[i]) for row in rows) for i in range(len(table.head))]
    lines = [table.title]
    for row in rows:
        cells = [" " * (width - columns(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(["", fit_left(row[0], widths[0]), *cells]).rstrip())
    for line in table.notes:
        lines += textwrap.wrap(printable(line), WIDTH, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else NOTHING


def score_table(metrics: Sequence[MetricScores], systems: list[str]) -> Table:
    """Return BLEU and chrF, and for several systems their p-values."""
    rows = [[metric.name, *(f"{score:.2f}" for score in metric.scores)] for metric in metrics]
    if len(systems) > 1:
        rows += [
            [f"p of {metric.name}", *("" if p is None else f"{p:.3f}" for p in metric.p_values)] for metric in metrics
        ]
    notes = [f"{metric.name}: {metric.signature}" for metric in metrics]
    if len(systems) > 1:
        notes.append(f"p: paired bootstrap against {systems[0]}, empty if the scores are equal")
    return Table("Scores", notes, ["", *systems], rows)


def tally_table(tallies: Sequence[Tally], systems: list[str], title: str, label: str, meaning: str) -> Table:
    """Return the recall of words. title, label, meaning: FREQUENCY or FACTS."""
    rows = [[tally.label, f"{tally.total:,}", *(_share(n, tally.total) for n in tally.matches)] for tally in tallies]
    bars = [(tally.label, [n / tally.total for n in tally.matches]) for tally in tallies if tally.total]
    return Table(title, [meaning], [label, "words", *systems], rows, bars)


def rule_table(tally: RuleTally, systems: list[str], rule: str) -> Table:
    """Return recall and precision of the words that match a regular expression."""
    return Table(
        "Numbers and names",
        [
            f"Words that match {rule} as a whole. Recall: share of the reference's that the output has. Precision: "
            "share of the output's that the reference has."
        ],
        ["", "reference", *systems],
        [
            ["words that match", f"{tally.total:,}", *(f"{n:,}" for n in tally.in_outputs)],
            ["recall", "", *(_share(n, tally.total) for n in tally.right)],
            [
                "precision",
                "",
                *(_share(n, in_output) for n, in_output in zip(tally.right, tally.in_outputs, strict=True)),
            ],
        ],
    )


def agreement_table(counted: Sequence[Agreement], systems: list[str]) -> Table:
    """Return the errors of agreement of the reference and the systems."""
    texts = ["reference", *systems]
    return Table(
        "Agreement in gender and number",
        [
            "Neighbours (determiner or adjective and noun, determiner and adjective, noun and adjective) without a "
            "common gender or number in the lexicon. Some are false alarms: compare with the reference's rate."
        ],
        ["", *texts],
        [
            ["wrong pairs per 1,000 words", *(f"{counts.per_thousand:.2f}" for counts in counted)],
            ["wrong pairs", *(f"{counts.wrong:,}" for counts in counted)],
            ["… in gender", *(f"{counts.gender:,}" for counts in counted)],
            ["… in number", *(f"{counts.number:,}" for counts in counted)],
            ["pairs compared", *(f"{counts.pairs:,}" for counts in counted)],
            ["words", *(f"{counts.words:,}" for counts in counted)],
        ],
        wrong_pairs={name: _most_often(counts) for name, counts in zip(texts, counted, strict=True)},
    )
