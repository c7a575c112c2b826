"""The page of `llrnn report`: one HTML file without scripts or external resources.

Texts, names and paths are untrusted input: `text` escapes everything that goes into the page.
"""

import html
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairseq_llrnn.systems.reranking.commands._tables import Table
from fairseq_llrnn.systems.reranking.metrics import Example
from fairseq_llrnn.version import __version__

STYLE = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
COLOURS = 6  # classes c0, c1, … of STYLE
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LONGEST = 80  # percent of the width for a share of 1, leaving room for the number


def page(
    systems: Sequence[str], size: str, tables: Sequence[Table], examples: Sequence[Example], files: Mapping[str, str]
) -> str:
    """Return the whole page.

    Args:
        size: of the test.
        examples: the sentences in which the systems differ most.
        files: the inputs by kind.
    """
    names = (" against " if len(systems) == 2 else ", ").join(systems)
    title = f"{names}: {os.path.basename(files['source'])} to {os.path.basename(files['reference'])}"
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)} (llrnn report)</title>\n<style>\n{STYLE}</style>\n</head>\n<body>",
            f'<h1>{text(title)}</h1>\n<p class="note">{text(size)}</p>',
            *(_section(table, systems) for table in tables),
            *_examples(examples, systems),
            "<h2>Files</h2>\n<dl>",
            *(f"<dt>{text(kind)}</dt><dd>{text(path)}</dd>" for kind, path in files.items()),
            f'</dl>\n<p class="note">Made by llrnn report, version {text(__version__)}.</p>\n</body>\n</html>\n',
        ]
    )


def text(anything: str) -> str:
    """Return a text escaped for HTML, with control characters such as changes of direction spelt out.

    Spaces of every kind, and the joiners that some scripts need, are kept.
    """
    visible = (
        c if c.isprintable() or c in "\u200c\u200d" or unicodedata.category(c) == "Zs" else ascii(c)[1:-1]
        for c in anything
    )
    return html.escape("".join(visible))


def _section(table: Table, systems: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{text(cell)}</th>' for cell in table.head)
    rows = [
        f'<tr><th scope="row">{text(row[0])}</th>' + "".join(f"<td>{text(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in table.rows
    ]
    return "\n".join(
        [
            f"<section>\n<h2>{text(table.title)}</h2>",
            # a narrow screen scrolls the table, not the page; tabindex makes it scrollable by keyboard
            f'<div class="wide" tabindex="0" role="region" aria-label="{text(table.title)}"><table>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>",
            *rows,
            "</tbody>\n</table></div>",
            *(f'<p class="note">{text(line)}</p>' for line in table.notes),
            *(_bars(table, systems) if table.bars else ()),
            *(["<h3>Most frequent wrong pairs</h3>\n<dl>"] if table.wrong_pairs else []),
            *(f'<dt>{text(name)}</dt><dd dir="auto">{text(pairs)}</dd>' for name, pairs in table.wrong_pairs.items()),
            *(["</dl>"] if table.wrong_pairs else []),
            "</section>",
        ]
    )


def _bars(table: Table, systems: Sequence[str]) -> Iterator[str]:
    """Yield the shares as horizontal bars in percent of the width, so that they scale with the page."""
    colours = [f"c{i % COLOURS}" for i in range(len(systems))]
    keys = (
        f'<span class="key"><span class="swatch {colour}"></span>{text(name)}</span>'
        for colour, name in zip(colours, systems, strict=True)
    )
    yield f"<figure>\n<figcaption>Percent found: {''.join(keys)}</figcaption>"
    for label, shares in table.bars:
        yield f"<div>{text(label)}</div>"
        for colour, share in zip(colours, shares, strict=True):
            bar = f'<span class="bar {colour}" style="width: {LONGEST * share:.2f}%"></span>'
            yield f'<div class="row">{bar} {100 * share:.1f}</div>'
    yield "</figure>"


def _examples(examples: Sequence[Example], systems: Sequence[str]) -> Iterator[str]:
    has_several = len(systems) > 1
    yield f"<section>\n<h2>{'Where the systems differ most' if has_several else 'Where the system is worst'}</h2>"
    if examples:
        yield '<p class="note">By chrF of the sentence. <mark>Marked</mark>: not as in the reference.</p>'
    else:
        yield f'<p class="note">{"They score alike in all." if has_several else "All are as in the reference."}</p>'
    for example in examples:
        yield from _example(example, systems)
    yield "</section>"


def _example(example: Example, systems: Iterable[str]) -> Iterator[str]:
    yield f"<article>\n<h3>Sentence {example.number:,}</h3>\n<dl>"
    yield f'<dt>source</dt><dd dir="auto">{text(example.source)}</dd>'
    yield f'<dt>reference</dt><dd dir="auto">{text(example.reference)}</dd>'
    for name, output, score in zip(systems, example.outputs, example.scores, strict=True):
        shown = "".join(f"<mark>{text(piece)}</mark>" if unlike else text(piece) for piece, unlike in output)
        yield f'<dt>{text(name)}, {score:.1f}</dt><dd dir="auto">{shown or "<em>(empty)</em>"}</dd>'
    yield "</dl>\n</article>"
