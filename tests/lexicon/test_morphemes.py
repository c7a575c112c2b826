"""Morphemes and their places, and words cut by Morfessor."""

import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.lexicon.morphemes import GROUPS, morpheme_features, morpheme_names
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.segments import LONGEST, read_segmentations, segment_by_morfessor


def test_the_longest_segment_is_the_stem() -> None:
    none: Counter[str] = Counter()
    assert morpheme_names(("un", "happi", "ness"), none) == ["Prefix:un", "Stem:happi", "Ending:ness"]
    assert morpheme_names(("re", "un", "happi", "ness", "es"), none) == [
        "Prefix:re", "Prefix:un", "Stem:happi", "Ending:ness", "Ending:es"
    ]  # fmt: skip
    assert morpheme_names(("word",), none) == ["Stem:word"]
    # of two of the same length, the one that fewer words have; then the first
    assert morpheme_names(("able", "seas"), Counter(able=3, seas=1)) == ["Prefix:able", "Stem:seas"]
    assert morpheme_names(("seas", "able"), Counter(able=1, seas=1)) == ["Stem:seas", "Ending:able"]
    assert morpheme_names(("Über", "Setzung"), none) == ["Prefix:über", "Stem:setzung"]


WORDS = ["dogs", "cats", "dog", "12", ".", "undoable"]
CUT = {"dogs": [("dog", "s")], "cats": [("cat", "s")], "undoable": [("un", "do", "able"), ("undo", "able")]}


def test_features_of_words() -> None:
    found = morpheme_features(WORDS, CUT, 1)
    assert found["dogs"] == {"Stem:dog": 1.0, "Ending:s": 1.0} and found["dog"] == {"Stem:dog": 1.0}
    assert "12" not in found and "." not in found
    either = {"Prefix:un", "Prefix:do", "Stem:able", "Stem:undo", "Ending:able"}
    assert set(found["undoable"]) == either


def test_the_floor_counts_the_words_of_the_text() -> None:
    assert morpheme_features(WORDS, CUT, 2)["dogs"] == {"Stem:dog": 1.0, "Ending:s": 1.0}
    # the text shows no `cats`, which has its features all the same
    found = morpheme_features(WORDS, CUT, 2, shown={"dogs", "dog"})
    assert found["dogs"] == {"Stem:dog": 1.0} and found["cats"] == {}


segments = st.lists(st.text("abAB", min_size=1, max_size=3), min_size=1, max_size=4)


@given(st.lists(segments, min_size=1, max_size=8), st.integers(1, 3))
def test_each_word_has_one_stem_and_its_morphemes_spell_it(rows: list[list[str]], floor: int) -> None:
    cut = {"".join(row): [tuple(row)] for row in rows}
    whole = morpheme_features(cut, cut, 1)
    types = Counter(segment for (row,) in cut.values() for segment in set(row))
    for word, (row,) in cut.items():
        names = morpheme_names(row, types)
        assert "".join(name.partition(":")[2] for name in names) == word.lower()
        assert sum(name.startswith("Stem:") for name in names) == 1
        assert [GROUPS.index(name.partition(":")[0]) for name in names] == sorted(
            GROUPS.index(name.partition(":")[0]) for name in names
        )
        assert whole[word] == dict.fromkeys(names, 1.0)
    having = Counter(name for row in whole.values() for name in row)
    for word, row in morpheme_features(cut, cut, floor).items():
        assert row == {name: 1.0 for name in whole[word] if having[name] >= floor}


STEMS, ENDINGS = ["walk", "talk", "jump", "play", "look", "cook", "kick"], ["", "s", "ed", "ing", "er"]
COUNTS = {stem + ending: 2 for stem in STEMS for ending in ENDINGS}


def test_morfessor_finds_stems_and_endings() -> None:
    pytest.importorskip("morfessor")
    del COUNTS["kicking"]
    state = random.getstate()
    found = segment_by_morfessor(COUNTS, [*COUNTS, "kicking", "Cooking", "12", "x" * (LONGEST + 1)])
    assert random.getstate() == state  # the caller's numbers are its own
    assert found["walking"] == (("walk", "ing"),) and found["kicking"] == (("kick", "ing"),)  # a new word, too
    assert found["Cooking"] == (("Cook", "ing"),)
    assert "12" not in found and "x" * (LONGEST + 1) not in found
    backwards = dict(reversed(COUNTS.items()))
    random.seed(5)
    assert segment_by_morfessor(backwards, [*COUNTS, "kicking"]) == {
        word: cut for word, cut in found.items() if word != "Cooking"
    }
    assert segment_by_morfessor({"12": 3}, ["12", "word"]) == {}


def test_a_word_that_comes_once_is_cut_as_a_new_one() -> None:
    """It is cut by a model without it."""
    pytest.importorskip("morfessor")
    known = {word: count for word, count in COUNTS.items() if word != "kicking"}
    for rare in ("kicking", "talkering"):
        as_new = segment_by_morfessor(known, [rare])
        assert segment_by_morfessor(known | {rare: 1}, [rare]) == as_new and as_new[rare] != ((rare,),)


def test_without_morfessor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "morfessor", None)
    with pytest.raises(OptionError) as caught:
        LexiconOptions(morphemes="morfessor").check()
    assert str(caught.value) == (
        "morphemes morfessor: expected the package Morfessor, found none; in a checkout of fairseq_llrnn: "
        "pip install '.[morphemes]', or give a FILE of words cut into segments"
    )


# Words cut into segments, from a file
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
