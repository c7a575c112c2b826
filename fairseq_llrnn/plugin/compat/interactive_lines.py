"""The lines that fairseq-interactive reads, where terms may stand behind a tab.

fairseq strips a line on both sides, so that terms behind an empty sentence (`\\tmaison`) would be a sentence.
"""

from __future__ import annotations

import fileinput
import sys
from collections.abc import Iterator

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import shown


def refuse_terms_alone() -> None:
    """From now on the fairseq-interactive that is calling refuses lines that have terms and no sentence."""
    frame = sys._getframe().f_back
    while frame is not None:
        if {"buffered_read", "make_batches"} <= frame.f_globals.keys():
            frame.f_globals["buffered_read"] = _buffered_lines
        frame = frame.f_back


def _buffered_lines(input: str, buffer_size: int) -> Iterator[list[str]]:  # named as fairseq calls them
    """As fairseq's `buffered_read`. Raises DataError, with the number of the line."""
    buffer = []
    with fileinput.input(files=[input], openhook=fileinput.hook_encoded("utf-8")) as lines:
        for number, line in enumerate(lines, start=1):
            if line.lstrip(" ").startswith("\t") and line.strip():
                raise DataError(
                    f"sentence {number} of the input: expected a sentence before its terms, found a tab first: "
                    f"{shown(line.strip())}; write the sentence, or leave the terms out"
                )
            buffer.append(line.strip())
            if len(buffer) >= buffer_size:
                yield buffer
                buffer = []
    if buffer:
        yield buffer
