"""Guessed features, compared with a slow version of the formula that leaves the word itself out."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.lexicon.guessing import LONGEST_SUFFIX, WHOLE, Guesser, contexts, kind_of

NOUN, VERB, BOTH = ["POS:NOUN"], ["POS:VERB", "Tense:Past"], ["POS:NOUN", "POS:VERB"]
WORDS = st.text("abé-1A", min_size=1, max_size=5)
FEATURES = st.sampled_from([NOUN, VERB, BOTH, ["POS:ADJ", "Case:Nom"], ["Number:Plur"]])
LEXICONS = st.dictionaries(WORDS, FEATURES, min_size=1, max_size=8)


def with_ones(lexicon: Mapping[str, list[str]]) -> dict[str, dict[str, float]]:
    return {word: dict.fromkeys(names, 1.0) for word, names in lexicon.items()}


def guesser(lexicon: Mapping[str, list[str]], *asked: str) -> Guesser:
    return Guesser.train(with_ones(lexicon), asked)


def slowly(lexicon: Mapping[str, list[str]], word: str) -> dict[str, Fraction]:
    """Compute the formula over all other words for each context."""
    others = {other: names for other, names in lexicon.items() if other != word}
    p: dict[str, Fraction] = {}
    for context in contexts(word):
        sharing = [frozenset(names) for other, names in others.items() if context in contexts(other)]
        if not sharing:
            return p
        t = len(set(sharing)) if context != ("", "") else 0
        names = {name for row in sharing for name in row} | set(p)
        p = {
            name: (sum(name in row for row in sharing) + t * p.get(name, Fraction(0))) / Fraction(len(sharing) + t)
            for name in names
        }
    return p


@given(LEXICONS, WORDS)
def test_shares_are_those_of_the_formula(lexicon: dict[str, list[str]], word: str) -> None:
    asked = [word, *lexicon]
    found = guesser(lexicon, *asked)
    for one in asked:
        shares = dict(zip(found.names, found.shares(one).tolist(), strict=True))
        expected = slowly(lexicon, one)
        assert shares == pytest.approx({name: float(expected.get(name, 0)) for name in found.names})


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
    assert told.accuracy(names)["POS"] == 1.0 > plain.accuracy(names)["POS"]
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
    assert len(contexts("constitution")) == 1 + LONGEST_SUFFIX
    assert contexts("1984") == contexts("2011")


def test_accuracy_counts_words_and_groups() -> None:
    lexicon = {"aen": NOUN, "ben": NOUN, "cen": VERB, "dog": VERB, "fog": VERB}
    found = guesser(lexicon, *lexicon)
    shares = np.array([found.shares(word) for word in lexicon]) >= 0.5
    gold = np.array([[name in names for name in found.names] for names in lexicon.values()])
    accuracy = found.accuracy(lexicon)
    assert accuracy[WHOLE] == (shares == gold).all(1).mean()
    assert accuracy["Tense"] == (shares == gold)[:, found.names.index("Tense:Past")].mean()
    assert list(accuracy) == [WHOLE, "POS", "Tense"]
    assert found.accuracy([]) == {}
