"""fairseq's dictionaries, read without fairseq."""

from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import hash_symbols, load_dictionary


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "dict.txt"
    path.write_bytes(text.encode())
    return path


def test_symbols_counts_and_kinds(tmp_path: Path) -> None:
    words = load_dictionary(write(tmp_path, "le 50\nà côté 3\nmadeupword0000 0\nmadeupword0001 7\n"))
    assert words.symbols[:6] == ("<s>", "<pad>", "</s>", "<unk>", "le", "à côté")
    assert words.counts.tolist() == [0, 0, 0, 0, 50, 3, 0, 7]
    assert words.specials.tolist() == [True] * 4 + [False, False, True, False]
    assert words.predictable.tolist() == [False, False, True, True, True, True, False, True]


def test_equals_fairseqs_own_reading(tmp_path: Path) -> None:
    fairseq_data = pytest.importorskip("fairseq.data")
    path = write(tmp_path, "b 5\na 5\nb 2 #fairseq:overwrite\n</s> 3 #fairseq:overwrite\nc 0\n")
    theirs = fairseq_data.Dictionary.load(str(path))
    ours = load_dictionary(path)
    assert list(ours.symbols) == theirs.symbols
    assert ours.counts[4:].tolist() == theirs.count[4:]


def test_counts_of_a_text(tmp_path: Path) -> None:
    words = load_dictionary(write(tmp_path, "le 1\nchat 1\n"))
    text = tmp_path / "train.txt"
    text.write_text("le chat le\nle chien\n", encoding="utf-8")
    assert words.count_text([text, text])[2:].tolist() == [4, 2, 6, 2]
    # <unk> stays possible, even where the text holds none
    text.write_text("le\n", encoding="utf-8")
    assert words.count_text([text])[2:].tolist() == [1, 1, 1, 0]


def test_own_counts_estimate_the_ends_of_sentences(tmp_path: Path) -> None:
    words = load_dictionary(write(tmp_path, "le 40\nchat 10\n"))
    assert words.counts_with_ends()[2:].tolist() == [2, 1, 40, 10]


def test_hash_knows_order_and_symbols(tmp_path: Path) -> None:
    one = hash_symbols(load_dictionary(write(tmp_path, "a 1\nb 1\n")).symbols)
    assert hash_symbols(load_dictionary(write(tmp_path, "a 9\nb 1\n")).symbols) == one
    assert hash_symbols(load_dictionary(write(tmp_path, "b 1\na 1\n")).symbols) != one


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected at least one `symbol count` line, found none"),
        ("le 3\nchat\n", "line 2: expected `symbol count`, found 'chat'"),
        ("le trois\n", "line 1: expected `symbol count`"),
        ("le -3\n", "line 1: expected `symbol count`"),
        ("le ²\n", "line 1: expected `symbol count`"),
        (f"le {10**19}\n", "line 1: expected `symbol count`"),
        ("le 3\nchat 1\nle 2\n", "line 3: symbol 'le' was already given in line 1; remove one of them"),
        ("<pad> 3\n", "line 1: symbol '<pad>' was already given by fairseq itself"),
    ],
)
def test_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        load_dictionary(write(tmp_path, text))
    assert message in str(caught.value)


def test_missing_and_badly_encoded_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load_dictionary(tmp_path / "none.txt")
    (tmp_path / "dict.txt").write_bytes("é 1\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 1, byte 1: expected UTF-8, found the byte 0xe9"):
        load_dictionary(tmp_path / "dict.txt")


def test_counts_are_integers(tmp_path: Path) -> None:
    assert load_dictionary(write(tmp_path, "a 1\n")).counts.dtype == np.int64
