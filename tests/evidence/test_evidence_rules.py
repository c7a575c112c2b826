"""What of a source sentence is evidence."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.rules import (
    FEATURES,
    FORMED,
    KINDS,
    NEXT,
    UNKNOWN,
    Evidence,
    EvidenceRules,
    form_of,
    is_token,
)
from fairseq_llrnn.features.dictionary import SPECIALS

KNOWN = frozenset({"the", "house", "i", "may", "12", "Paris", "B-52", "Lyon", "lyon"})
PATTERNS = {"flight": "[A-Z]{2}[0-9]+", "may": "may"}
MAPPING = {"1,000": ("1", "000"), "house": ("maison",)}
EVERYTHING = EvidenceRules(KINDS, MAPPING, PATTERNS)


def rules(*kinds: str) -> EvidenceRules:
    made = EvidenceRules(
        kinds, MAPPING if "mapped" in kinds else {}, PATTERNS if "patterns" in kinds else {}, weight=0.5
    )
    made.check()
    return made


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("numbers", "0 12 -3 +3 −3 1,000 1.234,5 1'000 .5 1999 99.99.99 2.3.456 12.5.1 ٣٤"),
        ("dates", "2024-01-31 2024-31-01 2024/1/3 31/12/2024 12/31/2024 31.12.2024 31.12.24 1-2-99"),
        ("codes", "B-52 10:30 50% 12th 1990-1995 2024-13-32 2024-01/31 0/1/2024 1/2/3 #1 @2 a1 1/2 m2 3:2"),
        ("urls", "http://a.b HTTPS://a.b/12?x=1 ftp://x www.foo.bar a.b@c.org @bob #tag #tag1 @b_1 amazon.com"),
        ("urls", "mailto:a@b.fr news.bbc.eu/x"),
        ("names", "Paris Jean-Luc O'Brien U.S. AT&T Éric Ǆor"),
        (None, "house the The I A paris iPhone - @-@ &apos; &#91; &quot; , . … @ # a@b a@b. http: .com +"),
        (None, "Lyon House"),
    ],
)
def test_forms(form: str | None, words: str) -> None:
    assert {word: form_of(word, KNOWN) for word in words.split()} == dict.fromkeys(words.split(), form)


def test_long_tokens_take_no_time() -> None:
    """Time grows with the length, not with its square: an untrusted text is no reason to stop."""
    long = 200_000
    for word in ("1" * long + "x", "1," * long, "a" * long, "a." * long, "a-" * long + "@", "#" + "a" * long + "!"):
        form_of(word, KNOWN)
    for word in ("@" * long, "a@" + "b." * long, "www." + "." * long + " ", "A" * long, "&" + "a" * long, "-" * long):
        form_of(word, KNOWN)


@pytest.mark.parametrize(
    ("word", "kind", "words"),
    [
        ("1,000", "mapped", ("1", "000")),
        ("house", "mapped", ("maison",)),
        *((word, kind, (word,)) for word, kind in (
            ("AF447", "patterns"), ("may", "patterns"), ("1,001", "numbers"), ("12", "numbers"),
            ("31/12/2024", "dates"), ("B-52", "codes"), ("#may", "urls"), ("Paris", "names"), ("paris", "copies"),
        )),
        *((word, None, ()) for word in ("the", "Lyon", "-", "@-@", "&apos;", "&#91;", "", *SPECIALS)),
    ],
)  # fmt: skip
def test_the_first_kind_that_holds(word: str, kind: str | None, words: tuple[str, ...]) -> None:
    assert EVERYTHING.find(word, KNOWN) == (None if kind is None else Evidence(kind, words))


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        # forms do not depend on the kinds that are chosen, and a pattern must match the whole token
        ("codes", "12"), ("codes", "31/12/2024"), ("numbers", "B-52"), ("names", "http://Paris"),
        ("patterns", "xAF447"), ("numbers", "may"),
    ],
)  # fmt: skip
def test_what_a_kind_does_not_find(kind: str, word: str) -> None:
    assert rules(kind).find(word, KNOWN) is None


def test_copies_are_all_unknown_words_with_a_letter() -> None:
    """Whatever their form, where that is not chosen."""
    copies = rules("copies")
    for word in ("Grönemeyer", "grönemeyer", "B52", "#may", "http://a.b", "Ǆor"):
        assert copies.find(word, KNOWN) == Evidence("copies", (word,))
    for word in ("Paris", "B-52", "1999", "31/12/2024", "—"):
        assert copies.find(word, KNOWN) is None


def test_the_features_of_slots() -> None:
    assert tuple(FEATURES) == KINDS
    assert len({*FEATURES.values(), UNKNOWN, NEXT}) == len(KINDS) + 2
    assert rules("numbers", "copies").feature_names == ("Evidence:Number", "Evidence:Copy", "Evidence:Unknown")
    assert EVERYTHING.feature_names == (*FEATURES.values(), UNKNOWN, NEXT)
    one_word = EvidenceRules(("mapped",), {"cat": ("chat",)}, {})
    assert one_word.feature_names == ("Evidence:Mapped", "Evidence:Unknown")


# ---- laws -----------------------------------------------------------------------------------------------------------

TOKENS = st.one_of(
    st.text(max_size=12),
    st.text("0123456789.,-/:'+", max_size=12),
    st.text("aAbB1@#.:/-&;", max_size=12),
    st.sampled_from(["house", "12", "1,000", "may", "Paris"]),
)
SOME_KINDS = st.lists(st.sampled_from(KINDS), unique=True, min_size=1).map(lambda some: sorted(some, key=KINDS.index))


@given(TOKENS, SOME_KINDS, st.frozensets(TOKENS, max_size=3))
def test_what_is_found_is_chosen_and_the_first_that_holds_alone(
    word: str, kinds: list[str], known: frozenset[str]
) -> None:
    found = rules(*kinds).find(word, known)
    assert found == rules(*kinds).find(word, known)
    alone = [one for kind in kinds if (one := rules(kind).find(word, known)) is not None]
    assert found == (alone[0] if alone else None)
    if found is not None and found.kind != "mapped":
        assert found.words == (word,)


@given(TOKENS, st.frozensets(TOKENS, max_size=3))
def test_forms_exclude_each_other(word: str, known: frozenset[str]) -> None:
    assert sum(rules(kind).find(word, known) is not None for kind in FORMED) <= 1
    assert form_of(word, known) in (None, *FORMED)


@given(TOKENS)
def test_knowing_more_makes_no_name_and_no_copy(word: str) -> None:
    known = {word, word.lower()}
    assert form_of(word, known) != "names"
    assert rules("copies").find(word, known) is None


@given(
    SOME_KINDS,
    st.dictionaries(
        TOKENS.filter(is_token),
        st.lists(TOKENS.filter(is_token), min_size=1, max_size=9).map(tuple),
        min_size=1,
        max_size=9,
    ),
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
)
def test_descriptions_survive_json(kinds: list[str], mapping: dict[str, tuple[str, ...]], weight: float) -> None:
    made = EvidenceRules(tuple(kinds), mapping if "mapped" in kinds else {}, PATTERNS, weight)
    read = EvidenceRules.described(json.loads(json.dumps(made.description())))
    assert read == made
    assert read.identity == made.identity


def test_a_prior_s_pattern_that_calls_itself_is_refused() -> None:
    description = EvidenceRules(("patterns",), {}, {"x": "a"}).description() | {"patterns": {"x": "(?R)"}}
    with pytest.raises(ValueError, match="the prior's patterns: pattern 'x' .* calls its own group"):
        EvidenceRules.described(description)


def test_the_identity_knows_all_but_the_words_of_the_table() -> None:
    """A table may grow after training: the weights are those of its kind."""
    others = [
        EvidenceRules(KINDS, MAPPING, PATTERNS, weight=0.5),
        EvidenceRules(KINDS[:-1], MAPPING, PATTERNS),
        EvidenceRules(KINDS, MAPPING, {"may": "may"}),
    ]
    assert len({made.identity for made in (EVERYTHING, *others)}) == 4
    assert EvidenceRules(KINDS, {**MAPPING, "house": ("maison",)}, PATTERNS).identity == EVERYTHING.identity
    turned = EvidenceRules(KINDS, dict(reversed(MAPPING.items())), dict(reversed(PATTERNS.items())))
    assert turned.identity == EVERYTHING.identity
    assert turned.description()["mapping"] == EVERYTHING.description()["mapping"]


# ---- untrusted ------------------------------------------------------------------------------------------------------

OTHERWISE = "the evidence is described by something else than kinds, weight, mapping, patterns"
TOGETHER = "the evidence and its mapping or patterns do not belong together"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        *((changes, OTHERWISE) for changes in (
            {"kinds": "numbers"}, {"kinds": [1]}, {"weight": 1}, {"weight": "0.5"}, {"mapping": []},
            {"mapping": {"a": "b"}}, {"mapping": {"a": [1]}}, {"patterns": ["a"]}, {"patterns": {"a": 1}},
        )),
        ({"kinds": []}, r"the evidence is of the kinds \[\], expected some of .*mapped, patterns, numbers, dates"),
        ({"kinds": ["numbers", "mapped"]}, "expected some of .*mapped"),
        ({"kinds": ["numbers", "numbers"]}, "expected some of .*mapped"),
        ({"kinds": ["words"]}, r"the kinds \['words'\], expected some of .*mapped"),
        *(({"weight": weight}, f"the evidence has the weight {weight}, which is none")
          for weight in (0.0, -1.0, float("nan"), float("inf"))),
        *((changes, TOGETHER) for changes in ({"kinds": ["numbers"]}, {"mapping": {}}, {"patterns": {}})),
        ({"mapping": {"a b": ["c"]}}, r"the evidence maps 'a b' to \['c'\], expected words without blanks"),
        ({"mapping": {"": ["c"]}}, r"the evidence maps '' to"),
        ({"mapping": {"a": []}}, r"the evidence maps 'a' to \[\]"),
        ({"mapping": {"a": ["b", "c d"]}}, r"the evidence maps 'a' to \['b', 'c d'\]"),
        ({"mapping": {"a": ["</s>"]}}, r"the evidence maps 'a' to \['</s>'\]"),
        ({"mapping": {"<unk>": ["b"]}}, r"the evidence maps '<unk>' to"),
        ({"patterns": {"a": "("}}, "the prior's patterns: pattern 'a' is no regular expression"),
        ({"patterns": {"a b": "a"}}, "the prior's patterns: 'a b' cannot name a pattern"),
    ],
)  # fmt: skip
def test_unsound_descriptions(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        EvidenceRules.described(EVERYTHING.description() | changes)


@pytest.mark.parametrize("description", [None, [], {}, "kinds", 3])
def test_no_description(description: object) -> None:
    with pytest.raises(ValueError, match=OTHERWISE):
        EvidenceRules.described(description)


def test_an_untrusted_pattern_is_stopped() -> None:
    slow = EvidenceRules.described(EVERYTHING.description() | {"patterns": {"slow": "(?:a|aa)+x"}})
    with pytest.raises(OptionError, match=r"the prior's patterns: pattern 'slow' .* takes too long"):
        slow.find("a" * 60 + "!", KNOWN)
