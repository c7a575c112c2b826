"""Real-valued features from a file."""

from pathlib import Path

import pytest
from lexicons import read_values

from fairseq_llrnn.errors import DataError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "values.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_values(tmp_path: Path) -> None:
    rows = "Paris\tSize:Log\t6.3\n\nlyon\tSize:Log\t-0.5\nparis\tPOS:X\t1\n"
    lexicon = read_values(write(tmp_path, rows), lowercase=True)
    assert lexicon.features("paris") == {"Size:Log": 6.3, "POS:X": 1.0}
    assert lexicon.features("lyon") == {"Size:Log": -0.5}
    assert "Paris" in read_values(write(tmp_path, "Paris\tSize:Log\t6.3\n"), lowercase=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected rows of word, feature and value, found none"),
        ("a\tSize:Log\n", "line 1: expected word, feature and value with tabs between, found 2 columns"),
        ("a\tSize:Log\t1\na\tSize:Log\t2\n", "line 2: 'Size:Log' of word 'a' was already given in line 1"),
        ("a\tSize:Log\tbig\n", "line 1: expected a number as value of 'Size:Log', found 'big'"),
        ("a\tSize:Log\tnan\n", "line 1: word 'a': feature 'Size:Log' has the value nan"),
        ("a\tsize\t1\n", "line 1: word 'a': 'size' is no feature name"),
        ("a\tTOPFORM:a\t1\n", "line 1: word 'a': feature 'TOPFORM:a' is of a group that is kept for word identity"),
        ("a\tEvidence:Url\t1\n", "feature 'Evidence:Url' is of a group that is kept for word identity and evidence"),
    ],
)
def test_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_values(write(tmp_path, text), lowercase=True)
    assert message in str(caught.value)
