"""Terms that training invents: only such as the target says exactly once, placed by translations of their lemmas."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evidence_world import EvidenceWorld, bitext_folders
from few_words import TARGET_WORDS
from one_pair import EPOCHS, inventing, make_prior
from shell import Shell
from term_world import FORMS, TermWorld
from tiny_world import build

from fairseq_llrnn.evidence.group_slots import requested_groups
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.plugin.data.evidence_data import MergedTargets
from fairseq_llrnn.prior.parts.evidence_part import evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms import invented_terms
from fairseq_llrnn.systems.terms.groups import MOST_FORMS
from fairseq_llrnn.systems.terms.invented_terms import invented_phrases, runs
from fairseq_llrnn.systems.terms.phrases import PhraseForms
from fairseq_llrnn.systems.terms.plugin import extension
from fairseq_llrnn.systems.terms.terms import Terms


def drawn(prior: Prior, forms: dict[str, list[str]], target: str, epochs: int = EPOCHS) -> list[list[Any]]:
    """The terms that the epochs ask for."""
    known = WordForms()
    for lemma, some in forms.items():
        for form in some:
            known.add(lemma, form)
    pairs = inventing(target, prior, known)
    found = []
    for epoch in range(1, epochs + 1):
        pairs.epoch = epoch
        source = pairs[0]["source"]
        assert plain(source).tolist() == [4, 5, 8, 2]
        found.append(requested_groups(evidence_table(prior).groups, source.numpy()[None])[0])
    return found


@pytest.mark.parametrize("target", ["chien chat", "chat chien", "deux chat Ann", "chien Ann"])
def test_a_target_says_each_of_its_terms_once_and_no_word_for_two(target: str) -> None:
    """`chat` is a form of two lemmas."""
    forms = {"A": ["chien", "chat"], "B": ["chat", "Léa"], "C": ["deux", "99"]}
    words = [TARGET_WORDS.index(word) for word in target.split()]
    some = False
    for terms in drawn(make_prior(), forms, target):
        said = [[word for word in words if word in term.group.words] for term in terms]
        assert all(len(one) == 1 for one in said) and len({one[0] for one in said}) == len(said)
        some |= bool(terms)
    assert some


def test_a_sentence_with_terms_of_its_own_gets_no_others() -> None:
    """The same word would be asked for twice, and a target that says it once have no probability."""
    prior, known = make_prior(), WordForms()
    for form in ("chien", "chat"):
        known.add("chien", form)
    pairs = inventing("chat Ann", prior, known)
    terms = Terms(evidence_table(prior), known)
    source = np.array(terms.marked([4, 5, 8, 2], ["chien"]))
    target = pairs.dataset[0]["target"].numpy()
    for epoch in range(1, EPOCHS + 1):
        assert pairs.invented.of(source, target, epoch, 0).tolist() == source.tolist()


def test_a_guess_that_a_noun_may_be_an_article_makes_it_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms by the prior's features `Lemma:…`, beside guessed parts of speech."""
    rows = {"chien": {"Lemma:chien": 1.0, "POS:N": 1.0}, "chat": {"Lemma:chien": 1.0, "POS:N": 0.75, "POS:DET": 0.25}}
    monkeypatch.setattr(extension, "word_features", lambda *_: rows)
    forms = extension.word_forms(make_prior(), None)
    assert forms.of("chien") == {"chien": {"Lemma:chien": 1.0, "POS:N": 1.0}, "chat": {"Lemma:chien": 1.0}}
    assert set(inventing("chat Ann", make_prior(), forms).invented.groups.group_of) == {"chien", "chat"}


def test_forms_of_the_dictionary_are_in_the_group_however_many_there_are() -> None:
    forms = {"chien": [*(f"chien{i}" for i in range(2 * MOST_FORMS)), "chat", "Léa"]}
    found = [term for terms in drawn(make_prior(), forms, "chat Ann") for term in terms]
    assert found and all(TARGET_WORDS.index("chat") in term.group.words for term in found)


def test_all_folders_have_the_phrases_of_the_first(
    shell: Shell, evidence: EvidenceWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of each would take tokens of their own, and a training that goes on in the second knew others."""
    world = TermWorld(evidence, tmp_path)
    world.make_prior(shell)
    monkeypatch.setattr(invented_terms, "invented_phrases", lambda said, _: {" ".join(s).strip(): {} for s in said})
    folders = bitext_folders(shell, evidence, tmp_path)
    _, *rest = world.train_args(tmp_path / "model", raw=False)
    found = []
    for epochs in ((1, 2, 3), (2,)):
        task = build([folders, *rest]).task
        for epoch in epochs:
            task.load_dataset("train", epoch=epoch, combine=True)
            assert len(task.dataset("train")) == (9 if epoch == 2 else len(evidence.text("train", "tgt")))
            found.append([group.name for group in evidence_table(task.prior).groups.groups])
    first = set(evidence.text("train", "tgt"))
    assert found == [found[0]] * 4 and first <= set(found[0]) <= first | set(FORMS)


# Phrases that training invents: words that agree, each said once in its target, and one token of it
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
        terms = requested_groups(table.groups, pair["source"].numpy()[None])[0]
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
