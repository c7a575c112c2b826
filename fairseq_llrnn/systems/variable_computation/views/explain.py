"""`llrnn explain --computation`: how much a network computed as it read each word, as a picture."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.places import check_place, writing_to
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.explain.pictures import need_matplotlib
from fairseq_llrnn.systems.variable_computation.computation_picture import ReadSentence, draw_computation
from fairseq_llrnn.systems.variable_computation.views import COMPUTATION

if TYPE_CHECKING:
    from fairseq_llrnn.explain.explanation import Explanation
    from fairseq_llrnn.plugin.scoring.explainer import Explainer


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
            with writing_to(f"--computation {self.path}"):
                draw_computation(self.read, Path(self.path))
