"""Phrases that training invents: words that agree, each said once in its target, and one token of it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from few_words import TARGET_WORDS
from one_pair import EPOCHS, inventing, make_prior

from fairseq_llrnn.evidence.group_slots import asked_groups
from fairseq_llrnn.lexicon.gather import WordForms
from fairseq_llrnn.plugin.data.evidence_data import MergedTargets
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.systems.terms.invented_terms import invented_phrases, runs
from fairseq_llrnn.systems.terms.phrases import PhraseForms

CZECH = {
    "malý": ("ADJ", {"malý": "Nom", "malého": "Gen", "malým": "Ins"}),
    "starý": ("ADJ", {"starý": "Nom", "starého": "Gen"}),
    "pes": ("NOUN", {"pes": "Nom", "psa": "Gen", "psem": "Ins"}),
    "běhat": ("VERB", {"běhá": "", "běhal": ""}),
    "a": ("CCONJ", {"a": ""}),
}
FRENCH = {"deux": ("ADJ", {"deux": "Nom", "99": "Gen"}), "chien": ("NOUN", {"chien": "Nom", "chat": "Gen"})}


def word_forms(language: dict[str, tuple[str, dict[str, str]]]) -> WordForms:
    found = WordForms()
    for lemma, (upos, forms) in language.items():
        for form, name in forms.items():
            found.add(lemma, form, [f"POS:{upos}", *([name if ":" in name else f"Case:{name}"] if name else [])])
    return found


def phrases(text: str, most: int = 9, language: Any = CZECH) -> dict[str, list[str]]:
    sentences = [line.split() for line in text.split(" / ")]
    found = invented_phrases(sentences, PhraseForms(word_forms(language)), most)
    return {phrase: sorted(forms) for phrase, forms in found.items()}


def test_words_that_agree_are_phrases_with_all_their_forms() -> None:
    assert phrases("běhá malý pes a starý") == {"malý pes": ["malého psa", "malý pes", "malým psem"]}
    assert phrases("malého starého psa") == {
        "starého psa": ["starého psa", "starý pes"],
        "malého starého psa": ["malého starého psa", "malý starý pes"],
    }


@pytest.mark.parametrize("text", ["psa malý", "malého běhá", "malý starý", "a pes", "běhá pes", "pes", "", "malý kos"])
def test_neighbours_that_do_not_belong_together_are_none(text: str) -> None:
    assert phrases(text) == {}


def test_a_form_of_a_phrase_is_not_another_one_and_there_are_at_most_so_many() -> None:
    assert list(phrases("malý pes / malého psa / starý pes")) == ["malý pes", "starý pes"]
    assert list(phrases("malý pes / malého psa / starý pes", most=1)) == ["malý pes"]


def test_no_sentence_is_read_where_nobody_knows_a_noun() -> None:
    def sentences() -> Iterator[list[str]]:
        raise AssertionError("read")
        yield []

    forms = WordForms()
    forms.add("malý", "malého", ["Case:Gen"])
    assert invented_phrases(sentences(), PhraseForms(forms)) == {}


def test_where_nothing_agrees_the_last_word_changes() -> None:
    english = {"white": ("ADJ", {"white": ""}), "dog": ("NOUN", {"dog": "Number:Sing", "dogs": "Number:Plur"})}
    assert phrases("a white dog", language=english) == {"white dog": ["white dog", "white dogs"]}


def test_runs_are_of_two_and_three_words() -> None:
    assert runs(4) == [(0, 2), (1, 3), (2, 4), (0, 3), (1, 4)] and runs(1) == []


def asked(target: str) -> list[tuple[list[str], list[str]]]:
    """Of epochs: the lemmas that are asked for, and the target as it is read."""
    prior = make_prior()
    table = evidence_table(prior)
    pairs = inventing(target, prior, word_forms(FRENCH))
    found = []
    for epoch in range(1, EPOCHS + 1):
        pairs.epoch = epoch
        pair = MergedTargets(pairs, table)[0]
        terms = asked_groups(table.groups, pair["source"].numpy()[None])[0]
        words = [table.target.symbols[token] for token in pair["target"].tolist()]
        found.append(([one.group.name for one in terms], words))
    return found


def test_a_phrase_that_is_asked_for_is_one_token_of_its_target() -> None:
    found = asked("Ann 99 chat")
    some = [words for lemmas, words in found if "99 chat" in lemmas]
    assert 0.2 * EPOCHS < len(some) < 0.95 * EPOCHS
    assert all(words == ["Ann", "99 chat", "</s>"] for words in some)
    assert all(words == ["Ann", "99", "chat", "</s>"] for lemmas, words in found if "99 chat" not in lemmas)
    assert not any("99 chat" in lemmas and len(lemmas) > 1 for lemmas, _ in found), "no word is said for two terms"


@pytest.mark.parametrize("target", ["deux chien 99 chat", "99 chat 99 chat", "99 chat Ann deux"])
def test_what_a_target_says_twice_or_half_once_more_is_not_asked_for(target: str) -> None:
    """A required phrase makes its words unlikely elsewhere (the third target says one of them)."""
    assert not any(" " in lemma for lemmas, _ in asked(target) for lemma in lemmas)


def test_the_place_of_a_phrase_is_that_of_its_words_if_they_are_neighbours() -> None:
    forms = word_forms(FRENCH)
    pairs = inventing("chien", make_prior(), forms)
    deux, chien = TARGET_WORDS.index("deux"), TARGET_WORDS.index("chien")
    words = [np.array([deux]), np.array([chien])]
    free = [(0, 1), (1, 2), (2, 3)]
    assert pairs.invented._place([{chien: 0.5}, {deux: 0.4}, {}], free, words) == [(0, 1), (1, 2)]
    assert pairs.invented._place([{chien: 0.5}, {}, {deux: 0.4}], free, words) == [(0, 1)], "the better of two"
    assert pairs.invented._place([{}, {}, {chien: 0.4}], free, words) == [(2, 3)]
    assert pairs.invented._place([{chien: 0.01}, {}, {}], free, words) == []
