"""Lines of fairseq-interactive that may have terms behind a tab: which of them is wrong is said by its number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.errors import DataError


class TermLines:
    """Of a task."""

    source_dictionary: Dictionary
    lines_read = 0

    def get_interactive_tokens_and_lengths(
        self, lines: Sequence[str], encode_fn: Callable[[str], str]
    ) -> tuple[list[Tensor], list[int]]:
        """As fairseq's. Raises DataError with the number of the line."""
        tokens = [self._encoded(line, encode_fn) for line in lines]
        return tokens, [one.numel() for one in tokens]

    def _encoded(self, line: str, encode_fn: Callable[[str], str]) -> Tensor:
        self.lines_read += 1
        try:
            made: Tensor = self.source_dictionary.encode_line(encode_fn(line), add_if_not_exist=False)
        except DataError as error:
            raise DataError(f"sentence {self.lines_read} of the input: {error}") from None
        return made.long()
