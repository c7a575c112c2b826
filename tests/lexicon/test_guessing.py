"""Guessed features, compared with a slow version of the formula that leaves the word itself out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.lexicon import guessing
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.guessing import LONGEST_EDGE, WHOLE, Guesser, beginnings, contexts, endings, kind_of
from fairseq_llrnn.lexicon.lexicon_table import Row, Table, as_features
from fairseq_llrnn.lexicon.unknown_word_features import TextWords, complete

NOUN, VERB, BOTH = ["POS:NOUN"], ["POS:VERB", "Tense:Past"], ["POS:NOUN", "POS:VERB"]
WORDS = st.text("abé-1A", min_size=1, max_size=5)
FEATURES = st.sampled_from([NOUN, VERB, BOTH, ["POS:ADJ", "Case:Nom"], ["Number:Plur"]])
LEXICONS = st.dictionaries(WORDS, FEATURES, min_size=1, max_size=8)


def with_ones(lexicon: Mapping[str, list[str]]) -> dict[str, dict[str, float]]:
    return {word: dict.fromkeys(names, 1.0) for word, names in lexicon.items()}


def guesser(lexicon: Mapping[str, list[str]], *asked: str) -> Guesser:
    return Guesser.train(with_ones(lexicon), asked)


Edges = Callable[[str], list[str]]


def slowly(lexicon: Mapping[str, list[str]], word: str, edges: Edges = endings) -> dict[str, Fraction]:
    """Compute the formula over all other words for each context."""
    others = {other: names for other, names in lexicon.items() if other != word}
    p: dict[str, Fraction] = {}
    for context in contexts(word, edges=edges):
        sharing = [frozenset(names) for other, names in others.items() if context in contexts(other, edges=edges)]
        if not sharing:
            return p
        t = len(set(sharing)) if context != ("", "") else 0
        names = {name for row in sharing for name in row} | set(p)
        p = {
            name: (sum(name in row for row in sharing) + t * p.get(name, Fraction(0))) / Fraction(len(sharing) + t)
            for name in names
        }
    return p


@given(LEXICONS, WORDS, st.sets(st.sampled_from(["POS", "Tense", "Case", "Number"])))
def test_shares_are_those_of_the_formula(lexicon: dict[str, list[str]], word: str, groups: set[str]) -> None:
    asked = [word, *lexicon]
    found = replace(guesser(lexicon, *asked), groups_by_beginning=frozenset(groups))
    for one in asked:
        shares = dict(zip(found.names, found.shares(one).tolist(), strict=True))
        by_ending, by_beginning = slowly(lexicon, one), slowly(lexicon, one, beginnings)
        for name in found.names:
            expected = by_beginning if feature_group(name) in groups else by_ending
            assert shares[name] == pytest.approx(float(expected.get(name, 0)))


def best_edges(lexicon: Mapping[str, list[str]], sure: float) -> set[str]:
    """Compute from single words which groups to guess from beginnings."""
    groups = {feature_group(name) for names in lexicon.values() for name in names}
    right: dict[Edges, dict[str, set[str]]] = {endings: {}, beginnings: {}}
    for edges, right_words in right.items():
        for group in groups:
            right_words[group] = {
                word
                for word, names in lexicon.items()
                if {name for name, p in slowly(lexicon, word, edges).items() if 2 * p >= 1 and name.startswith(group)}
                == {name for name in names if name.startswith(group)}
            }
    chosen = set()
    for group in groups:
        better = len(right[beginnings][group] - right[endings][group])
        worse = len(right[endings][group] - right[beginnings][group])
        if better > worse and (better - worse) ** 2 > sure**2 * (better + worse):
            chosen.add(group)
    mixed = [right[beginnings if group in chosen else endings][group] for group in groups]
    before = set(lexicon).intersection(*right[endings].values())
    return chosen if len(set(lexicon).intersection(*mixed)) >= len(before) else set()


@given(LEXICONS, st.sampled_from([0.0, 0.9, 1.5]))
def test_the_edge_with_more_right_guesses_is_taken(lexicon: dict[str, list[str]], sure: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guessing, "SURE", sure)
        chosen, _ = guesser(lexicon, *lexicon).with_best_edges(list(lexicon))
        assert chosen.groups_by_beginning == best_edges(lexicon, sure)


MUTATED = {  # the beginning determines the mutation, the ending the part of speech
    f"{initial}{middle}{end}": [pos, mutation]
    for initial, mutation in (("d", "Mutation:None"), ("dd", "Mutation:Soft"), ("nh", "Mutation:Nasal"))
    for middle in ("a", "e", "i", "o", "u", "y", "ae", "oe")
    for end, pos in (("wn", "POS:NOUN"), ("odd", "POS:VERB"))
}


def test_beginnings_are_read_where_they_determine_features() -> None:
    new = {"dduwch-wn": ["POS:NOUN", "Mutation:Soft"], "nhlodd": ["POS:VERB", "Mutation:Nasal"]}
    before = guesser(MUTATED, *MUTATED, *new)
    after, accuracy = before.with_best_edges(list(MUTATED))
    assert after.groups_by_beginning == {"Mutation"} and before.groups_by_beginning == frozenset()
    assert accuracy == {WHOLE: 1.0, "Mutation": 1.0, "POS": 1.0}
    for word, names in new.items():
        assert after.guess(word) == dict.fromkeys(names, 1.0)
    backwards = {word[::-1]: names for word, names in MUTATED.items()}
    assert guesser(backwards, *backwards).with_best_edges(list(backwards))[0].groups_by_beginning == {"POS"}


def test_words_of_a_text_are_guessed_from_the_better_edge() -> None:
    table = Table((Row(word, features=as_features(names)), 1) for word, names in MUTATED.items())
    complete(table, TextWords({**dict.fromkeys(MUTATED, 2), "nhlodd": 0}))
    assert table.completed is not None and table.completed.beginnings == ("Mutation",)
    assert table.completed.accuracy[WHOLE] == 1.0
    assert dict(table.lexicon().features("nhlodd")) == {"Mutation:Nasal": 1.0, "POS:VERB": 1.0}


def test_endings_are_kept_without_a_clear_gain() -> None:
    few = {"ab": NOUN, "ac": NOUN, "db": VERB, "dc": VERB}  # beginnings are right for all, endings for none
    assert guesser(few, *few).with_best_edges(list(few))[0].groups_by_beginning == frozenset()
    assert guesser(few, *few).with_best_edges([])[0].groups_by_beginning == frozenset()


@given(LEXICONS, WORDS)
def test_a_guess_is_shares_in_quarters_whatever_the_order(lexicon: dict[str, list[str]], word: str) -> None:
    guess = guesser(lexicon, word).guess(word)
    assert all(value in (0.25, 0.5, 0.75, 1.0) for value in guess.values())
    backwards = dict(reversed(lexicon.items()))
    assert guesser(backwards, *lexicon, word).guess(word) == guess  # what else is asked does not matter, either


def test_a_known_ending_wins() -> None:
    lexicon = {f"{stem}ing": VERB for stem in ("go", "read", "talk", "walk", "sail")}
    lexicon |= {stem: NOUN for stem in ("dog", "rag", "bag", "jug", "flag", "house", "tree", "road", "path", "pond")}
    found = guesser(lexicon, "jumping", "pound", "sailing")
    assert found.guess("jumping") == {"POS:VERB": 1.0, "Tense:Past": 1.0}
    assert found.guess("pound") == {"POS:NOUN": 1.0}
    assert found.guess("sailing") == found.guess("jumping")  # known, and guessed as if it were new


def test_what_another_source_says_of_words_is_their_kind() -> None:
    """The ending determines nothing: every other word with it is a verb. Words that can be either are mostly nouns."""
    names = [f"{stem}ing" for stem in "b c d f g h j k l m".split()]
    lexicon = {name: NOUN if i % 2 else VERB for i, name in enumerate(names)}
    said = {name: "either" if i % 2 else "verb" for i, name in enumerate(names)} | {"ring": "either", "sing": "verb"}
    asked = ["ring", "sing", "wing", *names]
    plain, told = Guesser.train(with_ones(lexicon), asked), Guesser.train(with_ones(lexicon), asked, said)
    assert told.guess("ring") == {"POS:NOUN": 1.0} and "POS:NOUN" not in told.guess("sing")
    assert told.guess("wing") == plain.guess("wing") == plain.guess("ring")  # nothing is said of it
    assert told.with_best_edges(names)[1]["POS"] == 1.0 > plain.with_best_edges(names)[1]["POS"]
    alone = Guesser.train(with_ones(lexicon), asked, {"bing": "it alone", "ring": "what nobody is"})
    for word in ("bing", "ring"):
        assert alone.guess(word) == plain.guess(word)


def test_a_lexicon_of_one_word_says_nothing_of_it() -> None:
    found = guesser({"xyz": VERB}, "xyz", "abc")
    assert found.guess("xyz") == {}
    assert found.guess("abc") == {"POS:VERB": 1.0, "Tense:Past": 1.0}


def test_real_values_are_those_of_the_words_that_have_them() -> None:
    known = {"aen": {"Age:Mean": 10.0}, "ben": {"Age:Mean": 20.0}, "cen": {"POS:X": 1.0, "Age:Zero": 0.0}}
    found = Guesser.train({**known, "den": {"POS:X": 1.0}}, ["fen"])
    assert found.guess("fen") == {"Age:Mean": pytest.approx(0.5 * 15.0), "POS:X": 0.5}


@pytest.mark.parametrize(
    ("word", "kind"),
    [("1984", "number"), ("12,5", "number"), ("…", "symbol"), ("Lyon", "capital"), ("a1", ""), ("\u094d", "")],
)
def test_kinds_of_words(word: str, kind: str) -> None:
    assert kind_of(word) == kind


def test_contexts_go_from_the_general_to_the_special() -> None:
    assert contexts("né") == [("", ""), ("", "é"), ("", "né"), ("", "^né")]
    assert contexts("Lyonnais")[:3] == [("", ""), ("capital", ""), ("capital", "s")]
    assert contexts("né", edges=beginnings) == [("", ""), ("", "n"), ("", "né"), ("", "né$")]
    assert contexts("Lyon", edges=beginnings)[:4] == [("", ""), ("capital", ""), ("capital", "l"), ("capital", "ly")]
    for edges in (endings, beginnings):
        assert len(contexts("constitution", edges=edges)) == 1 + LONGEST_EDGE
        assert contexts("1984", edges=edges) == contexts("2011", edges=edges)


def test_accuracy_counts_words_and_groups() -> None:
    lexicon = {"aen": NOUN, "ben": NOUN, "cen": VERB, "dog": VERB, "fog": VERB}
    found = guesser(lexicon, *lexicon)
    shares = np.array([found.shares(word) for word in lexicon]) >= 0.5
    gold = np.array([[name in names for name in found.names] for names in lexicon.values()])
    _, accuracy = found.with_best_edges(list(lexicon))
    assert accuracy[WHOLE] == (shares == gold).all(1).mean()
    assert accuracy["Tense"] == (shares == gold)[:, found.names.index("Tense:Past")].mean()
    assert list(accuracy) == [WHOLE, "POS", "Tense"]
    assert found.with_best_edges([]) == (found, {})
