"""`llrnn explain --computation`: how much a network computed as it read each word, as a picture.

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
from fairseq_llrnn.explain.pictures import need_matplotlib, new_figure, plain, save
from fairseq_llrnn.files.atomic_write import writing
from fairseq_llrnn.systems.variable_computation import COMPUTATION

if TYPE_CHECKING:
    from fairseq_llrnn.explain.explanation import Explanation
    from fairseq_llrnn.plugin.scoring.explainer import Explainer


LINE = 60  # tokens beside each other
INCHES, HEIGHT = 0.22, 1.3  # of a token, of a line


@dataclass(frozen=True)
class ReadSentence:
    """What was read, and the share of the dimensions that was computed for each token."""

    tokens: Sequence[str]
    shares: Sequence[float]


def lines_of(sentences: Sequence[ReadSentence]) -> list[ReadSentence]:
    """The sentences, cut into lines that fit the picture."""
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
        "with a cell that chooses how much it computes",
        "`computes`: the share of its dimensions that the network computed as it read the word.",
    ).add_argument(
        "--computation", metavar="FILE.png",
        help="of a model with --cell vcgru or vcrnn: also draw what share of its dimensions it computed to read each "
        "word, which the table has as `computes` (needs matplotlib)",
    )  # fmt: skip


def begin(args: argparse.Namespace) -> Picture | None:
    """The picture, if one is asked for. Raises OptionError: no PNG, no such place, no matplotlib."""
    path = args.computation
    if path is None:
        return None
    if Path(path).suffix.lower() != ".png":
        raise OptionError(f"--computation {path}: expected the name of a PNG; let it end in .png")
    check_place(path, f"--computation {path}")
    need_matplotlib("--computation")
    return Picture(path, args.path)


class Picture:
    """Of all sentences. path: of the picture. model: of the checkpoint."""

    def __init__(self, path: str, model: str) -> None:
        self.path, self.model, self.read = path, model, list[ReadSentence]()

    def opened(self, loaded: Explainer) -> None:
        """Nothing: each sentence says whether the model is one."""

    def add(self, words: Sequence[str], explained: Sequence[Explanation]) -> None:
        """Raises OptionError for a model that always computes everything."""
        details = [detail for e in explained[: len(words)] for detail in e.details if detail.name == COMPUTATION]
        if len(details) < len(words):
            raise OptionError(
                f"--computation: expected a model of --cell vcgru or vcrnn, found {self.model}, which computes "
                "everything for every word; leave it out"
            )
        self.read.append(ReadSentence(words, [detail.facts for detail in details]))

    def end(self) -> None:
        """Draw it. Raises OptionError where it cannot be written."""
        if any(sentence.tokens for sentence in self.read):
            with writing(f"--computation {self.path}", "result"):
                draw_computation(self.read, Path(self.path))
