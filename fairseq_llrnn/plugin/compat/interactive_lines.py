r"""Read the lines of fairseq-interactive, and of data with --dataset-impl raw, in place of fairseq's readers.

Lines end as in `llrnn score`. fairseq's own readers also break lines at a carriage return. In fairseq-interactive, a
line with an error has no answer, and the session continues. The error is printed with the number of the line. At the
end, the first error is raised again with the number of errors, so that the exit status shows it. Terms follow a tab.
fairseq strips a line on both sides, so that terms after an empty sentence (`\tmaison`) would become a sentence.
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
from fairseq_llrnn.files.text_lines import iter_lines, numbered, shown, text_only
from fairseq_llrnn.plugin.compat.data_files import no_sentences
from fairseq_llrnn.plugin.compat.loading import marker_of
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced
from fairseq_llrnn.plugin.compat.user_errors import callers

logger = logging.getLogger(__name__)

STDIN = "-"


def continue_after_input_error() -> None:
    """Replace the readers of the calling fairseq-interactive, if there is one."""
    for names in callers():
        fairseqs = names.get("make_batches")
        if "buffered_read" in names and isinstance(fairseqs, FunctionType):  # not yet replaced
            lines = _Lines(fairseqs)
            names.update(buffered_read=lines.read, make_batches=lines.batches)


def _typed_lines() -> Iterator[tuple[int, str]]:
    with reading("stdin"), open(0, "rb", closefd=False) as file:
        yield from numbered(file, "stdin")


class _Lines:
    """The lines of a session."""

    def __init__(self, make_batches: Callable[..., Iterator[Any]]) -> None:
        """make_batches: fairseq's function."""
        self.make_batches = make_batches
        self.before = 0  # number of lines before the current ones
        self.warned = False  # whether the warning about tabs was printed
        self.ids: list[int] = []  # numbers of the sentences of a batch, from 0
        self.refused: list[str] = []

    def read(self, input: str, buffer_size: int) -> Iterator[list[str]]:  # named as fairseq calls them
        """Replace fairseq's `buffered_read`.

        Raises DataError if the input cannot be read or is an empty file, and at the end after bad lines.
        """
        self.before, self.refused = 0, []
        buffer: list[str] = []
        lines = text_only(_typed_lines(), "stdin") if input == STDIN else text_only(iter_lines(input), input)
        for _, line in lines:
            buffer.append(line.rstrip())
            if len(buffer) >= buffer_size:
                yield buffer
                self.before, buffer = self.before + len(buffer), []
        if buffer:
            yield buffer
            self.before += len(buffer)
        if not self.before and input != STDIN:
            raise DataError(f"{input}: expected a text, found an empty file; write one sentence per line", input)
        if self.refused:
            raise DataError(
                f"{len(self.refused):,} of {self.before:,} sentences of the input have no answer; the first error: "
                f"{self.refused[0]}"
            )

    def batches(
        self, lines: Sequence[str], cfg: Any, task: Any, max_positions: Any, encode_fn: Callable[[str], str]
    ) -> Iterator[Any]:
        """Replace fairseq's `make_batches`. Lines with an error are in no batch."""
        marker = marker_of(task.source_dictionary)
        if marker is not None:
            marker.read_for(lines)
        elif hasattr(task, "tgt_dict") and not self.warned and any("\t" in line.strip() for line in lines):
            self.warned = True
            logger.warning("the prior has no terms, so that the text after a tab is read as words of the sentence")
        if "inference_step" not in vars(task):
            task.inference_step = self._surviving(task.inference_step)

        def make(group: Sequence[str]) -> list[Any]:
            for line in group:
                if marker is not None and line.lstrip(" ").startswith("\t"):
                    raise DataError(
                        f"expected a sentence before its terms, found a tab first: {shown(line.strip())}; add the "
                        "sentence, or remove the terms"
                    )
            return list(self.make_batches([line.strip() for line in group], cfg, task, max_positions, encode_fn))

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
        """Wrap the task's `inference_step`: a sentence whose search raises an error has no hypotheses."""

        def search_row(number: int, place: int, generator: Any, models: Any, sample: Any, **options: Any) -> list[Any]:
            row = {name: value[place : place + 1] for name, value in sample["net_input"].items()}
            of_row = {name: None if value is None else value[place : place + 1] for name, value in options.items()}
            try:
                return step(generator, models, {**sample, "net_input": row}, **of_row)
            except LLRNNError as error:
                self._refuse(number, error)
                return [[]]

        def search(generator: Any, models: Any, sample: Any, **options: Any) -> list[Any]:
            try:
                return step(generator, models, sample, **options)
            except LLRNNError:
                numbered_rows = zip(self.ids, range(len(self.ids)), strict=True)
                return [search_row(*row, generator, models, sample, **options)[0] for row in numbered_rows]

        return search

    def _refuse(self, number: int, error: LLRNNError) -> None:
        message = f"sentence {number + 1} of the input: {str(error).removeprefix('a sentence of the input: ')}"
        print(f"fairseq_llrnn: error: {message}", file=sys.stderr, flush=True)
        self.refused.append(message)


def whole_lines_of_data() -> AbstractContextManager[None]:
    """Let data sets of raw text that are loaded inside the block have the lines of `llrnn score`."""
    return replaced(IndexedRawTextDataset, "read_data", lambda before: _read_data)


def _read_data(self: Any, path: str, dictionary: Dictionary) -> None:
    """Replace fairseq's method. Raises DataError, with file and line, or for a text without lines."""
    for _, line in iter_lines(path):
        self.lines.append(line)
        tokens = dictionary.encode_line(
            line, add_if_not_exist=False, append_eos=self.append_eos, reverse_order=self.reverse_order
        )
        self.tokens_list.append(tokens.long())
    if not self.lines:
        raise no_sentences(path)
    self.sizes = np.array([len(tokens) for tokens in self.tokens_list])
