"""The rows of a comparison as text for a terminal, Markdown, TSV and LaTeX, and a paragraph for a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairseq_llrnn.comparison.bootstrap import RESAMPLES
from fairseq_llrnn.comparison.rows import ALL, OTHERS, Row
from fairseq_llrnn.comparison.settings import NEURAL, OF_PIECES, WITH_OURS
from fairseq_llrnn.comparison.texts import Texts

COMPARED_OTHERWISE = (*WITH_OURS, OTHERS[0], ALL[0])  # rows that are not another model
COLUMNS = {  # of files: of the terminal
    "model": "model",
    "bits/char valid": "valid",
    "bits/char test": "test",
    "sd": "sd",
    "seeds": "seeds",
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
valid, test, sd over seeds: bits per character. seen, unseen: bits per word of the test text. - ours: bits per character
more than ours, with its 95 % interval (low, high) and p. seconds: of a processor, for a training"""
CAPTION_CLOSED = ". closed: perplexity of the\ntest text over a closed dictionary, which contains the test's words"
NOT_CONVERGED, POOR = "not converged", "worse than 2-grams"
CAPTION_NOT_CONVERGED = f". {NOT_CONVERGED}: it\nimproved until its last epoch; a larger --max-epoch may help"
CAPTION_POOR = f". {POOR}: on\nthe validation text, with at least one seed; its training may be stuck"
LATEX = {
    **{symbol: rf"\{symbol}" for symbol in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}"},
}
MINUS = re.compile(r"-(?=[\d.])")  # at the beginning of a number


def cells(row: Row) -> list[str]:
    """Return the cells of a row. A missing figure is an empty cell."""
    if row.failure is not None:
        return [f"{row.title}: failed", *[""] * (len(COLUMNS) - 1)]
    figures = [
        *(f"{value:.4f}" for value in (row.valid, row.test, row.deviation)),
        str(len(row.seeds)),
        *(f"{value:.2f}" for value in (row.seen, row.unseen)),
    ]
    difference = [""] * 4
    if row.is_reference:
        difference[0] = "ours"
    elif row.difference is not None:
        value, low, high, p = row.difference
        difference = [f"{value:+.4f}", f"{low:+.4f}", f"{high:+.4f}", f"{p:.4f}"]
    shown = ["" if figure == "nan" else figure for figure in figures]
    doubts = ", ".join([NOT_CONVERGED] * (not row.is_converged) + [POOR] * row.is_poor)
    title = f"{row.title} ({doubts})" if doubts else row.title
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
    caption += CAPTION_NOT_CONVERGED if not all(row.is_converged for row in rows) else ""
    caption += CAPTION_POOR if any(row.is_poor for row in rows) else ""
    return "\n".join([*lines, caption, *failures(rows)])


def failures(rows: Sequence[Row]) -> list[str]:
    """Return the reasons of failed models, for lines below the table."""
    return [f"{row.title}: failed, {row.failure}" for row in rows if row.failure is not None]


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    head, *body = (f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in table_of(rows))
    below = [line for reason in failures(rows) for line in ("", reason)]
    return "\n".join([head, "|---|" + "---:|" * (len(table_of(rows)[0]) - 1), *body, *below]) + "\n"


def as_tsv(rows: Sequence[Row]) -> str:
    """Return the table with tabs between cells."""
    return "".join("\t".join(line) + "\n" for line in table_of(rows))


def as_latex(rows: Sequence[Row]) -> str:
    """Return the table as a `tabular` with the rules of the package booktabs."""
    table = table_of(rows)
    head, *body = (" & ".join(map(_latex, line)) + r" \\" for line in table)
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(table[0]) - 1)}}}", r"\toprule", head, r"\midrule", *body]
    below = [line for reason in failures(rows) for line in ("", _latex(reason))]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *below]) + "\n"


def _latex(cell: str) -> str:
    """Return a cell with LaTeX's symbols for special characters and for the minus sign."""
    if MINUS.match(cell):
        return f"$-${cell[1:]}"
    return "".join(LATEX.get(char, char) for char in cell)


def paragraph(rows: Sequence[Row], texts: Texts, name: str, tries: int, spelling: Sequence[str | Path]) -> str:
    """Return a paragraph for a paper: data, models, measure and the main difference. It is empty without figures.

    Args:
        spelling: the lexicons that spell unknown words.
    """
    sizes = ", ".join(f"{len(texts.lines(split)):,} {split}" for split in ("train", "valid", "test"))
    done = [row for row in rows if row.failure is None]
    if not done:
        return ""
    sentences = [
        f"We train language models on {name} ({texts.num_tokens:,} words; sentences: {sizes}).",
        f"The models are: {'; '.join(row.title for row in done)}.",
        *_methods(done, tries, spelling),
    ]
    ours = next((row for row in done if row.is_reference), None)
    others = [row for row in done if row.difference is not None and row.name not in COMPARED_OTHERWISE]
    if ours is not None and others:
        best = min(others, key=lambda row: row.test)
        assert best.difference is not None
        value, low, high, p = best.difference
        sentences.append(
            f"Ours ({ours.title}) needs {_with_deviation(ours)}, the best other model on the test text "
            f"({best.title}) {_with_deviation(best)}: a difference of {value:+.3f} (95 % interval {low:+.3f} to "
            f"{high:+.3f}, p = {p:.4f}, paired bootstrap over sentences with {RESAMPLES:,} resamples, which ignores "
            "the variation between seeds)."
        )
    if (joined := next((row for row in done if row.name == OTHERS[0]), None)) is not None and joined.difference:
        value, low, high, p = joined.difference
        sentences.append(
            f"A mixture of all other models needs {_with_deviation(joined)}, and with ours, {joined.test - value:.3f} "
            f"bits: a difference of {value:+.3f} (95 % interval {low:+.3f} to {high:+.3f}, p = {p:.4f})."
        )
    return " ".join(sentences) + "\n"


def _methods(rows: Sequence[Row], tries: int, spelling: Sequence[str | Path]) -> list[str]:
    """Return sentences about the methods of these rows alone."""
    names = {row.name for row in rows}
    has_pieces, is_pretrained = not names.isdisjoint(OF_PIECES), any(name.startswith("pretrained") for name in names)
    networks = [row for row in rows if row.name in NEURAL]
    has_networks = any(row.name in NEURAL and row.name not in OF_PIECES for row in rows)
    has_words = has_networks or any(row.name.startswith("ngrams") for row in rows)
    spellers = " and ".join(["character n-grams", *(Path(lexicon).name for lexicon in spelling)])
    added = ", in networks together with a network of characters that sees the context" if has_networks else ""
    strings = [f"{spellers} spell unknown words{added}"] if has_words else []
    strings += ["pieces and characters include bytes"] if has_pieces else []
    strings += ["the tokens of the pretrained network write every string"] if is_pretrained else []
    sentences = [
        f"Every model gives a probability to every string: {', and '.join(strings)}.",
        "We report bits per character of the test text, with blanks and ends of sentences.",
    ]
    if networks:
        each = "each network and each number of pieces" if has_pieces else "each network"
        sentences.append(
            f"The number of settings of dropout, width and learning rate that were tried is {tries}, for {each}. The "
            "validation text chooses them and stops each training."
        )
    if is_pretrained:
        sentences.append(
            "All weights of the pretrained network are fine-tuned, with its own tokenizer. The number of learning "
            f"rates that were tried is {tries}. The validation text chooses the rate and the number of epochs."
        )
    if any(name.startswith("mixed") for name in names):
        sentences.append("The validation text chooses the weights of mixtures and the order of their n-grams.")
    if trained := [len(row.seeds) for row in rows if row.name in NEURAL or row.name.startswith("pretrained")]:
        shown = f"{min(trained)} to {max(trained)}" if len(set(trained)) > 1 else str(trained[0])
        sentences.append(f"The number of seeds is {shown}.")
    if unfinished := [row.title for row in rows if not row.is_converged]:
        sentences.append(f"Trainings that improved until the last epoch: {'; '.join(unfinished)}.")
    if any(row.perplexity == row.perplexity for row in rows):
        sentences.append("Perplexities are of models over a closed dictionary, which contains the words of all texts.")
    return sentences


def _with_deviation(row: Row) -> str:
    """Return the bits of a row, with their standard deviation if there is one."""
    deviation = f" (standard deviation over {len(row.seeds)} seeds: {row.deviation:.3f})"
    return f"{row.test:.3f} bits{deviation if row.deviation == row.deviation else ''}"


def best_row(rows: Sequence[Row]) -> Row | None:
    """Return the row of a single model with the fewest bits on the validation text, for the commands to go on with.

    Pieces and characters are left out: other commands read texts in words.
    """
    left_out = ("mixed", "joined", *OF_PIECES)
    single = [row for row in rows if row.failure is None and not row.name.startswith(left_out)]
    return min(single, key=lambda row: row.valid) if single else None
