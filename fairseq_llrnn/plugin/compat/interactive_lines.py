"""The lines of text that fairseq itself reads: in fairseq-interactive, and with --dataset-impl raw.

They end as those of `llrnn score` do: fairseq's own readers also begin a line behind a carriage return, and make two
sentences of one. In fairseq-interactive, a line that will not do costs its own answer, and not the session: what is
wrong is said with the number of the line, and the session goes on; at its end the error is said again, with how many
there were, so that the exit status tells it. Terms may stand behind a tab; fairseq strips a line on both sides, so that
terms behind an empty sentence (`\\tmaison`) would be a sentence.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import FunctionType
from typing import Any

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import IndexedRawTextDataset

from fairseq_llrnn.errors import DataError, LLRNNError
from fairseq_llrnn.files.reading import reading
from fairseq_llrnn.files.text_lines import iter_lines, numbered, shown
from fairseq_llrnn.plugin.compat.loading import marker_of
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced
from fairseq_llrnn.plugin.compat.user_errors import callers

logger = logging.getLogger(__name__)

STDIN = "-"


def continue_after_input_error() -> None:
    """From now on the fairseq-interactive that is calling, if one is, does so."""
    for names in callers():
        fairseqs = names.get("make_batches")
        if "buffered_read" in names and isinstance(fairseqs, FunctionType):  # and not the method below
            lines = _Lines(fairseqs)
            names.update(buffered_read=lines.read, make_batches=lines.batches)


def _typed_lines() -> Iterator[tuple[int, str]]:
    with reading("stdin"), open(0, "rb", closefd=False) as file:
        yield from numbered(file, "stdin")


class _Lines:
    """Of a session."""

    def __init__(self, make_batches: Callable[..., Iterator[Any]]) -> None:
        """make_batches: fairseq's."""
        self.make_batches = make_batches
        self.before = 0  # lines before those at hand
        self.warned = False  # of tabs
        self.ids: list[int] = []  # of the sentences of a batch, from 0
        self.refused: list[str] = []

    def read(self, input: str, buffer_size: int) -> Iterator[list[str]]:  # named as fairseq calls them
        """As fairseq's `buffered_read`. Raises DataError: it cannot be read; at the end, where lines were refused."""
        self.before, self.refused = 0, []
        buffer: list[str] = []
        for _, line in _typed_lines() if input == STDIN else iter_lines(input):
            buffer.append(line.rstrip())
            if len(buffer) >= buffer_size:
                yield buffer
                self.before, buffer = self.before + len(buffer), []
        if buffer:
            yield buffer
            self.before += len(buffer)
        if self.refused:
            raise DataError(
                f"{len(self.refused):,} of {self.before:,} sentences of the input have no answer; the first of them: "
                f"{self.refused[0]}"
            )

    def batches(
        self, lines: Sequence[str], cfg: Any, task: Any, max_positions: Any, encode_fn: Callable[[str], str]
    ) -> Iterator[Any]:
        """As fairseq's `make_batches`; what cannot be a sentence is in none of them."""
        marker = marker_of(task.source_dictionary)
        if marker is not None:
            marker.read_for(lines)
        elif hasattr(task, "tgt_dict") and not self.warned and any("\t" in line.strip() for line in lines):
            self.warned = True
            logger.warning("what is behind a tab is read as words of the sentence, since the prior knows no terms")
        if "inference_step" not in vars(task):
            task.inference_step = self._surviving(task.inference_step)

        def make(some: Sequence[str]) -> list[Any]:
            for line in some:
                if marker is not None and line.lstrip(" ").startswith("\t"):
                    raise DataError(
                        f"expected a sentence before what it requires, found a tab first: {shown(line.strip())}; write "
                        "the sentence, or leave that out"
                    )
            return list(self.make_batches([line.strip() for line in some], cfg, task, max_positions, encode_fn))

        try:
            batches = make(lines)
        except LLRNNError:
            batches = []
            for place, line in enumerate(lines):
                try:
                    batches += [batch._replace(ids=batch.ids + place) for batch in make([line])]
                except LLRNNError as error:
                    self._refuse(self.before + place, error)
        for batch in batches:
            self.ids = (self.before + batch.ids).tolist()
            yield batch

    def _surviving(self, step: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        """The task's `inference_step`: a sentence that no search can begin has no hypotheses."""

        def one(number: int, place: int, generator: Any, models: Any, sample: Any, **options: Any) -> list[Any]:
            rows = {name: value[place : place + 1] for name, value in sample["net_input"].items()}
            chosen = {name: None if value is None else value[place : place + 1] for name, value in options.items()}
            try:
                return step(generator, models, {**sample, "net_input": rows}, **chosen)
            except LLRNNError as error:
                self._refuse(number, error)
                return [[]]

        def each(generator: Any, models: Any, sample: Any, **options: Any) -> list[Any]:
            try:
                return step(generator, models, sample, **options)
            except LLRNNError:
                numbered_rows = zip(self.ids, range(len(self.ids)), strict=True)
                return [one(*row, generator, models, sample, **options)[0] for row in numbered_rows]

        return each

    def _refuse(self, number: int, error: LLRNNError) -> None:
        message = f"sentence {number + 1} of the input: {str(error).removeprefix('a sentence of the input: ')}"
        print(f"fairseq_llrnn: error: {message}", file=sys.stderr, flush=True)
        self.refused.append(message)


def whole_lines_of_data() -> AbstractContextManager[None]:
    """While a data set is loaded: lines of raw text end as those of `llrnn score`."""
    return replaced(IndexedRawTextDataset, "read_data", lambda before: _read_data)


def _read_data(self: Any, path: str, dictionary: Dictionary) -> None:
    """As fairseq's. Raises DataError, with file and line."""
    for _, line in iter_lines(path):
        self.lines.append(line)
        tokens = dictionary.encode_line(
            line, add_if_not_exist=False, append_eos=self.append_eos, reverse_order=self.reverse_order
        )
        self.tokens_list.append(tokens.long())
    self.sizes = np.array([len(tokens) for tokens in self.tokens_list])
