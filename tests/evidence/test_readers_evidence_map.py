"""The table of what source words become, good and broken."""

import gzip
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.rules import read_evidence_map


def write(place: Path, text: str) -> Path:
    path = place / "map.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_words_become_words(tmp_path: Path) -> None:
    path = write(tmp_path, "1,000\t1 000\n\n  \nLondon \t Londres\r\nLondon\tLondres\n10\t1\u00a00\n")
    assert read_evidence_map(path) == {"1,000": ("1", "000"), "London": ("Londres",), "10": ("1", "0")}


def test_compressed(tmp_path: Path) -> None:
    path = tmp_path / "map.tsv.gz"
    path.write_bytes(gzip.compress(b"London\tLondres\n"))
    assert read_evidence_map(path) == {"London": ("Londres",)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("London\tLondres\nParis\n", "line 2: expected `source token<TAB>target words`, found 1 columns: 'Paris'; fix "
         "the row"),
        ("a\tb\tc\n", "line 1: expected `source token<TAB>target words`, found 3 columns: 'a\\tb\\tc'; fix the row"),
        ("\tb\n", "line 1: the source side is empty; expected a word: fill it, or remove the row"),
        ("a\t  \n", "line 1: the target side is empty; expected a word: fill it, or remove the row"),
        ("New York\tNew York\n", "line 1: expected one source token, found a blank in 'New York'; only single tokens "
         "can be mapped: fix or remove the row"),
        ("1\u00a0000\t1 000\n", "line 1: expected one source token, found a blank in '1\\xa0000'"),
        ("<unk>\tb\n", "line 1: '<unk>' is a special symbol, not a word; fix or remove the row"),
        ("a\tb </s>\n", "line 1: '</s>' is a special symbol, not a word; fix or remove the row"),
        ("a\tb c\nb\tb\na\tc\n", "line 3: 'a' was mapped to 'b c' in line 1, found 'c' here; remove one of them"),
        ("\n", ": expected rows `source token<TAB>target words`, found none; is it the right file?"),
    ],
)  # fmt: skip
def test_errors(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_evidence_map(path)
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)


def test_words_that_are_codes_of_languages_are_no_header(tmp_path: Path) -> None:
    path = tmp_path / "map.tsv"
    path.write_text("it\tes\nis\test\n", encoding="utf-8")
    assert read_evidence_map(path) == {"it": ("es",), "is": ("est",)}
    path.write_text("SL\tTL\nis\test\n", encoding="utf-8")
    assert read_evidence_map(path) == {"is": ("est",)}
