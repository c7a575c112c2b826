"""Annotated unknown words: the three schemes by hand and by their definitions, and the way back."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.systems.rare_words.annotations import (
    ANNOTATION,
    MOST_AWAY,
    SCHEMES,
    annotated_source,
    annotated_target,
    frequent_words,
    numbered,
    restored,
)

# fluffy, poodle and skagen are rare
SOURCE = "the fluffy poodle in skagen , near the poodle".split()
TARGET = "le caniche duveteux de skagen , près du caniche".split()
FROM = {0: 0, 1: 2, 2: 1, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8}  # de has no source word
KNOWN = frozenset("the in , near".split())
KNOWN_TARGETS = frozenset("le de , près du".split())
TRANSLATIONS = {"poodle": ("caniche",), "fluffy": ("duveteux",), "in": ("de",)}
ANNOTATED = {
    "copyable": "le <unk2> <unk1> de <unk3> , près du <unk2>",
    "positional": "le <unkpos-1> <unkpos+1> de <unkpos+0> , près du <unkpos+0>",
    "positional-all": (
        "le <pos+0> <unk> <pos-1> <unk> <pos+1> de <pos-null> <unk> <pos+0> , <pos+0> près <pos+0> du <pos+0> "
        "<unk> <pos+0>"
    ),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_sentence_and_back(scheme: str) -> None:
    source = annotated_source(SOURCE, KNOWN, scheme)
    numbers = "<unk1> <unk2> <unk3> <unk2>" if scheme == "copyable" else "<unk> <unk> <unk> <unk>"
    assert [word for word in source if word not in KNOWN] == numbers.split()
    target = annotated_target(TARGET, KNOWN_TARGETS, SOURCE, KNOWN, FROM, scheme)
    assert target == ANNOTATED[scheme].split()
    assert restored(target, SOURCE, KNOWN, TRANSLATIONS) == TARGET, "skagen is copied"


def test_unknown_words_without_a_source() -> None:
    for scheme, expected in {
        "copyable": "<unk-null> <unk-null> a",
        "positional": "<unkpos-null> <unkpos+1> a",
        "positional-all": "<unk> <pos-null> <unk> <pos+1> a <pos+2>",
    }.items():
        # x comes from no word, y from a known one
        found = annotated_target(["x", "y", "a"], {"a"}, ["in"], {"in"}, {1: 0, 2: 0}, scheme)
        assert found == expected.split()
        back = restored(found, ["in"], {"in"}, TRANSLATIONS)
        assert back == (["<unk>", "<unk>", "a"] if scheme == "copyable" else ["<unk>", "de", "a"])


def test_words_far_away_are_not_linked() -> None:
    source = list(map(str, range(MOST_AWAY + 2)))
    for away, shown in ((MOST_AWAY, f"<unkpos-{MOST_AWAY}>"), (MOST_AWAY + 1, "<unkpos-null>")):
        assert annotated_target(["x"], (), source, (), {0: away}, "positional") == [shown]
        pos = shown.replace("unkpos", "pos")
        assert annotated_target(["x"], (), source, (), {0: away}, "positional-all") == ["<unk>", pos]


def test_what_a_model_may_write() -> None:
    def back(text: str) -> str:
        return " ".join(restored(text.split(), ["a", "b"], {"a"}, {"b": ("B", "b'")}))

    assert back("<unk1> <unk2> <unk0> <unk>") == "B b' <unk> <unk> <unk>", "b is the only unknown word"
    assert back("<unkpos+0> <unkpos+0> <unkpos-9> <unkpos+9>") == "a B b' <unk> <unk>"
    assert back("<pos+0> c <pos+0> <unk> <pos+0> <pos+1> d <pos-1>") == "c B b' d", "places count words alone"
    assert back("<unk> <pos-null> <pos+0> <unk>") == "a <unk>", "the first that points to a word"
    assert back("") == ""
    assert back("<unk-x> <pos> <unkpos1000000000>") == "<unk-x> <pos> <unkpos1000000000>", "words of the text"


def test_frequent_words() -> None:
    lines = [["b", "a", "<unk>", "<unk1>", "c"], ["a", "<pos+1>", "<pos+1>", "<pos+1>", "b", "d", "d", "d"]]
    assert frequent_words(lines, 2) == {"d", "a"}
    assert frequent_words(lines, 9) == {"a", "b", "c", "d"}


WORDS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=10)


@given(WORDS, WORDS, st.data(), st.sampled_from(SCHEMES))
@settings(max_examples=200, deadline=None)
def test_the_way_back_by_definition(source: list[str], target: list[str], data: st.DataObject, scheme: str) -> None:
    known, known_targets = (data.draw(st.sets(st.sampled_from("abcdef"))) for _ in range(2))
    places = st.one_of(st.none(), st.integers(0, len(source) - 1))
    drawn = [data.draw(places) for _ in target]
    comes_from = {j: i for j, i in enumerate(drawn) if i is not None}
    translations = {"a": ("A",), "b": ("B", "B")}
    annotated = annotated_target(target, known_targets, source, known, comes_from, scheme)
    expected: list[str] = []
    for j, (word, i) in enumerate(zip(target, drawn, strict=True)):
        points = i is not None and (source[i] not in known if scheme == "copyable" else abs(j - i) <= MOST_AWAY)
        if word in known_targets:
            expected.append(word)
        elif i is None or not points:
            expected.append("<unk>")
        else:
            expected += translations.get(source[i], (source[i],))
    assert restored(annotated, source, known, translations) == expected
    plain = [word for word in annotated if ANNOTATION.fullmatch(word) is None]
    assert set(plain) <= known_targets | {"<unk>"}
    assert len(annotated) == len(target) * (2 if scheme == "positional-all" else 1)
    assert len(annotated_source(source, known, scheme)) == len(source)


@given(WORDS, st.sets(st.sampled_from("abcdef")))
def test_numbers_are_those_of_different_unknown_words(source: list[str], known: set[str]) -> None:
    unknown = [word for word in source if word not in known]
    order = [word for i, word in enumerate(unknown) if word not in unknown[:i]]
    assert list(numbered(source, known).items()) == list(zip(order, itertools.count(1), strict=False))
