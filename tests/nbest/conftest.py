"""A list that is written and opened."""

from pathlib import Path

import pytest
from two_sentences import Open

from fairseq_llrnn.nbest import NBestFile, open_nbest


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Write a list and open it."""

    def run(text: str | bytes, format_name: str | None = None) -> NBestFile:
        path = tmp_path / "list"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return open_nbest(path, tmp_path, format_name)

    return run
