"""Texts of fairseq-preprocess, as bytes that stand here; tests of `llrnn prior` read fairseq's own."""

from pathlib import Path

import pytest
from binary_texts import write_binary_text

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.binary_text import KINDS, read_binary_text

SENTENCES = [[4, 5, 2], [2], [6, 2]]


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_of_every_kind_of_number(tmp_path: Path, kind: int) -> None:
    tokens, lengths = read_binary_text(write_binary_text(tmp_path / "train", SENTENCES, kind), 7)
    assert (tokens.tolist(), lengths.tolist()) == ([4, 5, 2, 2, 6, 2], [3, 1, 2])


def test_what_is_no_such_text(tmp_path: Path) -> None:
    prefix = write_binary_text(tmp_path / "train", SENTENCES)
    with pytest.raises(DataError, match=r"train\.bin: expected numbers of the 6 words of its dictionary, found 6; run"):
        read_binary_text(prefix, 6)
    index, text = (Path(f"{prefix}.{end}") for end in ("idx", "bin"))
    whole = index.read_bytes()
    text.write_bytes(text.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"train\.bin: expected 6 tokens, as its index has, found a shorter file; run"):
        read_binary_text(prefix, 7)
    for content in (whole[:-1], whole[:20], b"", b"x" + whole[1:], whole[:17] + b"\x06" + whole[18:]):
        index.write_bytes(content)
        with pytest.raises(DataError, match=r"train\.idx: expected the index of a memory-mapped dataset, found some"):
            read_binary_text(prefix, 7)
    with pytest.raises(DataError, match="expected the index"):
        read_binary_text(tmp_path / "no", 7)
