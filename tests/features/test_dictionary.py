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
    path = write(tmp_path, "b 5\na 5\nd 2 #fairseq:overwrite\ne  3 \t\r\nà\u2028côté 1\nf\x85 7\nc 0")
    theirs = fairseq_data.Dictionary.load(str(path))
    ours = load_dictionary(path)
    assert list(ours.symbols) == theirs.symbols
    assert ours.counts[4:].tolist() == theirs.count[4:]


ODD = [
    "a 5\nb 6", "a 5 ", "a 5\r", "a 5\u00a0", "a 5 #fairseq:overwrite", "a 5 #fairseq:overwrite ",
    "a 5  #fairseq:overwrite", "a #fairseq:overwrite", "a 5\na 6", "a 5\na 6 #fairseq:overwrite",
    "<s> 0 #fairseq:overwrite", "<unk> 3", "a", "a 5.0", "a +5", "a -5", "a 1_000", "a ٣", "a ²", "\ufeffa 5",
    "a 5\n\nb 6", "a 5\n", "\n", "\u00a0 5", " 5", "  5", "a\u00a05", "a\rb 5",
    "a 5\rb 6", "a\x85b 5", "a\u2028b 5", "a\x0bb\x0c\x1cc 5", "a\tb 5", "a b 5", "#fairseq:overwrite 3",
]  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_reads_what_fairseq_reads_or_refuses_it(tmp_path: Path, text: str) -> None:
    """And what fairseq makes of it is a dictionary that fairseq can read again."""
    fairseq_data = pytest.importorskip("fairseq.data")
    path, again = write(tmp_path, f"{text}\n"), tmp_path / "again.txt"
    try:
        theirs = fairseq_data.Dictionary.load(str(path))
        theirs.save(str(again))
        fairseq_data.Dictionary.load(str(again))
    except Exception:
        with pytest.raises(DataError, match=r"dict\.txt, line [12]: "):
            load_dictionary(path)
        return
    try:
        ours = load_dictionary(path)
    except DataError as error:
        assert "dict.txt, line " in str(error)
    else:
        assert (list(ours.symbols), ours.counts.tolist()) == (theirs.symbols, [0] * 4 + theirs.count[4:])


def test_symbols_that_show_nothing_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, "a 5\n\u200b 3\nb\u200b 2\n\u2060\u00ad 1\n")
    assert load_dictionary(path).symbols[4:] == ("a", "\u200b", "b\u200b", "\u2060\u00ad")
    assert caplog.messages == [f"{path}: 2 symbols have no visible character (lines 2, 4); clean the text"]


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
        ("<pad> 3\n", "line 1: symbol '<pad>' was already given by fairseq itself; remove one of them"),
        *(
            (
                f"{symbol} 0 #fairseq:overwrite\nle 5\n",
                f"line 1: symbol '{symbol}' was already given by fairseq itself, which #fairseq:overwrite only hides "
                "from fairseq-preprocess; remove one of them",
            )
            for symbol in ("<s>", "<pad>", "</s>", "<unk>")
        ),
        ("le 5\nle 3 #fairseq:overwrite\n", "line 2: symbol 'le' was already given in line 1, which #fairseq:overwrite "
         "only hides from fairseq-preprocess; remove one of them"),
        ("\ufeffle 5\n", "line 1: expected `symbol count`, found a byte order mark, which fairseq takes for a letter"),
        ("\u00a0 5\n", "line 1: expected `symbol count`, found '\\xa0 5'"),
        ("le\rchat 5\n", "line 1: expected `symbol count`, found 'le\\rchat 5'"),
    ],
)  # fmt: skip
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
