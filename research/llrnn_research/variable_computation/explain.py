"""`llrnn explain --computation`: draw the share of the network computed at each word.

The picture is that of Jernite 2018, figure 2.5.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.places import check_place
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.atomic_write import writing
from llrnn_research.pictures import need_matplotlib, new_figure, plain, save
from llrnn_research.variable_computation import COMPUTATION

if TYPE_CHECKING:
    from fairseq_llrnn.explain.explanation import Explanation
    from fairseq_llrnn.plugin.scoring.explainer import Explainer


LINE = 60  # tokens in a line
INCHES, HEIGHT = 0.22, 1.3  # per token, per line


@dataclass(frozen=True)
class ReadSentence:
    """The tokens of a sentence, and the share of the dimensions computed for each."""

    tokens: Sequence[str]
    shares: Sequence[float]


def lines_of(sentences: Sequence[ReadSentence]) -> list[ReadSentence]:
    """Split the sentences into lines that fit the picture."""
    return [
        ReadSentence(sentence.tokens[start : start + LINE], sentence.shares[start : start + LINE])
        for sentence in sentences
        for start in range(0, len(sentence.tokens), LINE)
    ]


def draw_computation(sentences: Sequence[ReadSentence], path: Path) -> None:
    """Write a PNG with a bar for each token. Raises OSError."""
    lines = lines_of(sentences)
    longest = max(len(line.tokens) for line in lines)
    figure = new_figure(INCHES * longest + 1.0, HEIGHT * len(lines) + 0.3)
    for number, line in enumerate(lines, start=1):
        axes = figure.add_subplot(len(lines), 1, number)
        axes.bar(range(len(line.shares)), line.shares, color="#4c72b0", width=0.85)
        labels = [plain(token) for token in line.tokens]
        axes.set_xticks(range(len(labels)), labels, fontsize=9, rotation=0 if max(map(len, labels)) < 3 else 60)
        axes.set_xlim(-0.6, longest - 0.4)
        axes.set_ylim(0.0, 1.0)
        axes.set_yticks([0.0, 0.5, 1.0], ["0", "0.5", "1"], fontsize=7)
        axes.set_ylabel("m", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, path, dpi=110)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group(
        "with a cell of variable computation",
        "`computes`: the share of its dimensions that the network computed for the word.",
    ).add_argument(
        "--computation", metavar="FILE.png",
        help="also draw the share of dimensions that a model with --cell vcgru or vcrnn computed for each word, which "
        "is in the table as `computes` (needs matplotlib)",
    )  # fmt: skip


def begin(args: argparse.Namespace) -> Picture | None:
    """Return the picture if requested. Raises OptionError for another format, an invalid place, or without matplotlib.
    """
    path = args.computation
    if path is None:
        return None
    if Path(path).suffix.lower() != ".png":
        raise OptionError(f"--computation {path}: expected a file name that ends in .png; fix the name")
    check_place(path, f"--computation {path}")
    need_matplotlib("--computation")
    return Picture(path, args.path)


class Picture:
    """A picture of all sentences. path: of the picture. model: the checkpoint's path."""

    def __init__(self, path: str, model: str) -> None:
        self.path, self.model, self.read = path, model, list[ReadSentence]()

    def opened(self, loaded: Explainer) -> None:
        """Do nothing: `add` checks the model."""

    def add(self, words: Sequence[str], explained: Sequence[Explanation]) -> None:
        """Add a sentence. Raises OptionError for a model that always computes everything."""
        details = [detail for e in explained[: len(words)] for detail in e.details if detail.name == COMPUTATION]
        if len(details) < len(words):
            raise OptionError(
                f"--computation: expected a model of --cell vcgru or vcrnn, found {self.model}, which always computes "
                "all dimensions; leave it out"
            )
        self.read.append(ReadSentence(words, [detail.facts for detail in details]))

    def end(self) -> None:
        """Draw the picture. Raises OptionError if it cannot be written."""
        if any(sentence.tokens for sentence in self.read):
            with writing(f"--computation {self.path}", "result"):
                draw_computation(self.read, Path(self.path))
