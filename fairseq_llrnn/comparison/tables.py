"""The rows of a comparison as text for a terminal, Markdown, TSV and LaTeX, and a paragraph for a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fairseq_llrnn.comparison.bootstrap import RESAMPLES
from fairseq_llrnn.comparison.rows import Row
from fairseq_llrnn.comparison.settings import OURS
from fairseq_llrnn.comparison.texts import Texts

COLUMNS = {  # of files: of the terminal
    "model": "model",
    "bits/char valid": "valid",
    "bits/char test": "test",
    "sd": "sd",
    "bits/word seen": "seen",
    "bits/word unseen": "unseen",
    "minus ours": "- ours",
    "low": "low",
    "high": "high",
    "p": "p",
    "perplexity, dictionary with the test's words": "closed",
    "seconds": "seconds",
}
CLOSED = list(COLUMNS).index("perplexity, dictionary with the test's words")
CAPTION = """\
valid, test, sd: bits per character. seen, unseen: bits per word of the test text. - ours: bits per character more than
ours, with its 95 % interval (low, high) and p. seconds: of a processor, for a training"""
CAPTION_CLOSED = ". closed: perplexity of the\ntest text over a closed dictionary, which contains the test's words"
NOT_CONVERGED = "not converged"
CAPTION_NOT_CONVERGED = f". {NOT_CONVERGED}: it\nimproved until its last epoch; a larger --max-epoch may help"
LATEX = re.compile(r"([&%$#_{}])")


def cells(row: Row) -> list[str]:
    """Return the cells of a row. A missing figure is an empty cell."""
    if row.failure is not None:
        return [f"{row.title}: failed, {row.failure}", *[""] * (len(COLUMNS) - 1)]
    figures = [
        *(f"{value:.4f}" for value in (row.valid, row.test, row.deviation)),
        *(f"{value:.2f}" for value in (row.seen, row.unseen)),
    ]
    difference = [""] * 4
    if row.is_reference:
        difference[0] = "ours"
    elif row.difference is not None:
        value, low, high, p = row.difference
        difference = [f"{value:+.4f}", f"{low:+.4f}", f"{high:+.4f}", f"{p:.4f}"]
    shown = ["" if figure == "nan" else figure for figure in figures]
    title = row.title if row.is_converged else f"{row.title} ({NOT_CONVERGED})"
    last = [f"{row.perplexity:,.1f}", f"{row.seconds:.0f}"]
    return [title, *shown, *difference, *("" if figure == "nan" else figure for figure in last)]


def table_of(rows: Sequence[Row], names: Iterable[str] = COLUMNS) -> list[list[str]]:
    """Return the header and the cells. Without a closed dictionary, its column is left out."""
    table = [[*names], *map(cells, rows)]
    return table if any(line[CLOSED] for line in table[1:]) else [line[:CLOSED] + line[CLOSED + 1 :] for line in table]


def as_text(rows: Sequence[Row]) -> str:
    """Return the table with aligned columns, and a caption."""
    table = table_of(rows, COLUMNS.values())
    whole = [line for line in table if any(line[1:])]
    widths = [max(len(line[i]) for line in whole) for i in range(len(table[0]))]
    lines = []
    for first, *others in table:
        figures = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *figures]).rstrip())
    caption = CAPTION + (CAPTION_CLOSED if len(widths) == len(COLUMNS) else "")
    return "\n".join([*lines, caption if all(row.is_converged for row in rows) else caption + CAPTION_NOT_CONVERGED])


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    head, *body = (f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in table_of(rows))
    return "\n".join([head, "|---|" + "---:|" * (len(table_of(rows)[0]) - 1), *body]) + "\n"


def as_tsv(rows: Sequence[Row]) -> str:
    """Return the table with tabs between cells."""
    return "".join("\t".join(line) + "\n" for line in table_of(rows))


def as_latex(rows: Sequence[Row]) -> str:
    """Return the table as a `tabular` with the rules of the package booktabs."""
    table = table_of(rows)
    head, *body = (" & ".join(LATEX.sub(r"\\\1", cell) for cell in line) + r" \\" for line in table)
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(table[0]) - 1)}}}", r"\toprule", head, r"\midrule", *body]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def paragraph(rows: Sequence[Row], texts: Texts, name: str, tries: int) -> str:
    """Return a paragraph for a paper: data, models, measure and the main difference. It is empty without figures."""
    sizes = ", ".join(f"{len(texts.lines(split)):,} {split}" for split in ("train", "valid", "test"))
    done = [row for row in rows if row.failure is None]
    if not done:
        return ""
    seeds = max(len(row.seeds) for row in done)
    sentences = [
        f"We train language models on {name} ({texts.num_tokens:,} words; sentences: {sizes}).",
        f"The models are: {'; '.join(row.title for row in done)}.",
        "Every model gives a probability to every string: character n-grams spell unknown words, and pieces include "
        "bytes.",
        "We report bits per character of the test text, with blanks and ends of sentences.",
        f"The number of settings of dropout, width and learning rate that were tried is {tries}, for each neural model "
        "and each number of pieces. The validation text chooses them and stops each training. The number of seeds is "
        f"{seeds}.",
    ]
    if any(row.name.startswith("pretrained") for row in done):
        sentences.append("All weights of the pretrained network are fine-tuned, with its own tokenizer.")
    if any(row.perplexity == row.perplexity for row in done):
        sentences.append("Perplexities are of models over a closed dictionary, which contains the words of all texts.")
    ours = next((row for row in done if row.is_reference), None)
    others = [row for row in done if row.difference is not None and row.name not in (*OURS, "mixed-ours")]
    if ours is not None and others:
        best = min(others, key=lambda row: row.test)
        assert best.difference is not None
        value, low, high, p = best.difference
        sentences.append(
            f"Ours ({ours.title}) needs {ours.test:.3f} bits, the best other model ({best.title}) {best.test:.3f}: a "
            f"difference of {value:+.3f} (95 % interval {low:+.3f} to {high:+.3f}, p = {p:.4f}, paired bootstrap over "
            f"sentences with {RESAMPLES:,} resamples)."
        )
    return " ".join(sentences) + "\n"


def best_row(rows: Sequence[Row]) -> Row | None:
    """Return the row of a single model with the fewest bits on the validation text, for the commands to go on with."""
    single = [row for row in rows if row.failure is None and not row.name.startswith("mixed")]
    return min(single, key=lambda row: row.valid) if single else None
