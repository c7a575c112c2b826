"""Morphemes and their places, and words cut by Morfessor."""

import random
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.lexicon.guessing import GROUPS, morpheme_features, morpheme_names, place_of_stem
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.segments import LONGEST, segment_by_morfessor


def test_the_longest_segment_is_the_stem() -> None:
    none: Counter[str] = Counter()
    assert morpheme_names(("un", "happi", "ness"), none) == ["Prefix:un", "Stem:happi", "Ending:ness"]
    assert morpheme_names(("re", "un", "happi", "ness", "es"), none) == [
        "Prefix:re", "Prefix:un", "Stem:happi", "Ending:ness", "Ending:es"
    ]  # fmt: skip
    assert morpheme_names(("word",), none) == ["Stem:word"]
    # of two of the same length, the one that fewer words have; then the first
    assert place_of_stem(("able", "seas"), Counter(able=3, seas=1)) == 1
    assert place_of_stem(("seas", "able"), Counter(able=1, seas=1)) == 0
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
    """By a model without it."""
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
