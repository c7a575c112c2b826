"""The lexicon: union over analyses, order does not matter, and clear refusals."""

import math
from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.features import Lexicon, feature_group

NAMES = st.sampled_from(["POS:NOUN", "POS:VERB", "Gender:Fem", "Shape:SmallNumber", "Number:Plur"])
VALUES = st.floats(-1e6, 1e6, width=32)
ENTRIES = st.lists(
    st.tuples(st.sampled_from(["la", "porte", "12"]), st.dictionaries(NAMES, VALUES, max_size=9)), max_size=9
)


def lexicon_of(entries: list[tuple[str, dict[str, float]]]) -> Lexicon:
    lexicon = Lexicon()
    for word, features in entries:
        lexicon.add(word, features)
    return lexicon


def contents(lexicon: Lexicon) -> dict[str, dict[str, float]]:
    return {word: dict(lexicon.features(word)) for word in lexicon}


def test_features_are_the_union_over_analyses() -> None:
    lexicon = Lexicon()
    lexicon.add("couvent", ["POS:NOUN", "Gender:Masc"])
    lexicon.add("couvent", ("POS:VERB",))
    assert contents(lexicon) == {"couvent": {"POS:NOUN": 1.0, "Gender:Masc": 1.0, "POS:VERB": 1.0}}


def test_the_larger_real_value_stays() -> None:
    lexicon = lexicon_of([("5", {"Shape:SmallNumber": 0.5}), ("5", {"Shape:SmallNumber": 0.95})])
    lexicon.add("5", {"Shape:SmallNumber": 0.1, "Weight:kg": -2})
    assert dict(lexicon.features("5")) == {"Shape:SmallNumber": 0.95, "Weight:kg": -2.0}


@given(ENTRIES, st.randoms())
def test_the_order_of_adding_does_not_matter(entries: list, random: Random) -> None:
    shuffled = list(entries)
    random.shuffle(shuffled)
    assert contents(lexicon_of(entries)) == contents(lexicon_of(shuffled))


@given(ENTRIES)
def test_adding_twice_changes_nothing(entries: list) -> None:
    assert contents(lexicon_of(entries + entries)) == contents(lexicon_of(entries))


@given(ENTRIES, ENTRIES)
def test_update_equals_adding_one_after_the_other(first: list, second: list) -> None:
    together = lexicon_of(first)
    together.update(lexicon_of(second))
    assert contents(together) == contents(lexicon_of(first + second))


def test_it_behaves_like_a_collection_of_words() -> None:
    lexicon = lexicon_of([("b", {}), ("a", {"POS:DET": 1.0}), ("b", {"POS:NOUN": 1.0})])
    assert list(lexicon) == ["b", "a"] and len(lexicon) == 2
    assert "a" in lexicon and "c" not in lexicon
    assert dict(lexicon.features("c")) == {} and "c" not in lexicon


def test_features_cannot_be_changed_from_outside() -> None:
    lexicon = lexicon_of([("a", {"POS:DET": 1.0})])
    for word in ("a", "unknown"):
        with pytest.raises(TypeError):
            lexicon.features(word)["POS:NOUN"] = 1.0  # type: ignore[index]


def test_update_adds_the_notes() -> None:
    first, second = Lexicon(), Lexicon()
    first.notes["repeated rows"] = 2
    second.notes["repeated rows"] = 3
    first.update(second)
    assert first.notes == {"repeated rows": 5}


@pytest.mark.parametrize(
    ("word", "features", "message"),
    [
        *(("un", {"Weight:kg": value}, f"feature 'Weight:kg' has the value {value}; expected a finite number")
          for value in (math.nan, math.inf, -math.inf)),
        *(("un", [name], f"{name!r} is no feature name; expected a group, a colon and a value, such as Gender:Fem")
          for name in ("Gender", "Gender:", ":Fem", "")),
        ("", ["POS:DET"], r"with the features \['POS:DET'\] has an empty word; remove it"),
    ],
)  # fmt: skip
def test_what_is_refused(word: str, features: Collection[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Lexicon().add(word, features)


def test_a_refused_entry_leaves_nothing_behind() -> None:
    lexicon = Lexicon()
    with pytest.raises(DataError):
        lexicon.add("un", {"POS:DET": 1.0, "nonsense": 1.0})
    assert "un" not in lexicon


def test_a_single_string_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match="features is the string 'POS:DET'; give a collection"):
        Lexicon().add("un", "POS:DET")


def test_feature_group() -> None:
    assert feature_group("Gender:Fem") == "Gender"
    assert feature_group("TOPFORM:12:30") == "TOPFORM"
    assert feature_group("NOTTOP") == "NOTTOP"
