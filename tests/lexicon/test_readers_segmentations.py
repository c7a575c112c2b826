"""Words cut into segments, from a file."""

from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.segments import read_segmentations


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "segments"
    path.write_text(text, encoding="utf-8")
    return path


def test_three_ways_to_write_a_row(tmp_path: Path) -> None:
    rows = "# Output from Morfessor\nUnhappiness\tUn happi ness\n\nun happy\n3 dog + s\ncat + s\n3 the\n"
    assert read_segmentations(write(tmp_path, rows), lowercase=True) == {
        "unhappiness": (("un", "happi", "ness"),),
        "unhappy": (("un", "happy"),),
        "dogs": (("dog", "s"),),
        "cats": (("cat", "s"),),
        "the": (("the",),),
    }
    assert "Unhappiness" in read_segmentations(write(tmp_path, rows), lowercase=False)


def test_without_a_row_of_morfessors_a_number_is_a_segment(tmp_path: Path) -> None:
    assert read_segmentations(write(tmp_path, "3 D\n20 th\n"), lowercase=False) == {
        "3D": (("3", "D"),),
        "20th": (("20", "th"),),
    }


def test_a_word_may_have_several(tmp_path: Path) -> None:
    rows = "un do able\nundo able\nUn do able\n"
    assert read_segmentations(write(tmp_path, rows), lowercase=True) == {
        "undoable": (("un", "do", "able"), ("undo", "able"))
    }


def test_lower_case_depends_on_the_whole_word(tmp_path: Path) -> None:
    # the second sigma ends its segment, and not the word
    rows = "ΟΔΟΣ\tΟΔ ΟΣ\nΟΔΟΣΗ\tΟΔ ΟΣ Η\n"
    found = read_segmentations(write(tmp_path, rows), lowercase=True)
    assert found == {"οδος": (("οδ", "ος"),), "οδοση": (("οδ", "οσ", "η"),)}
    assert read_segmentations(write(tmp_path, "Iş ık\n"), lowercase=True, language="tr") == {"ışık": (("ış", "ık"),)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected rows of words cut into segments, found none"),
        ("# nothing\n\n", "expected rows of words cut into segments, found none"),
        ("dogs\tdog s\ndogs\tdog es\n", "line 2: expected segments that spell the word 'dogs', found 'dog es'; fix"),
        ("dogs\t\n", "line 1: expected segments that spell the word 'dogs', found ''; fix the row"),
        ("\tdog s\n", "line 1: expected segments that spell the word '', found 'dog s'; fix the row"),
        ("dogs\tdog\ts\n", "line 1: expected a word, a tab and its segments with blanks between, or the segments "
         "alone, found 3 columns: 'dogs\\tdog\\ts'; fix the row"),
    ],
)  # fmt: skip
def test_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_segmentations(write(tmp_path, text), lowercase=True)
    assert message in str(caught.value) and "segments" in str(caught.value)
