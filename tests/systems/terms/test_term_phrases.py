"""Forms of phrases: which words inflect, what agrees, and what nobody knows."""

import random
from collections.abc import Iterable, Mapping
from itertools import permutations, product

import pytest

from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.systems.terms import form_analyses
from fairseq_llrnn.systems.terms import phrases as module
from fairseq_llrnn.systems.terms.form_analyses import AGREEING, Analysis, agreeing, forms_of_features, values_of
from fairseq_llrnn.systems.terms.phrases import PhraseForms

FRENCH = """
maison maison NOUN Gender=Fem|Number=Sing
maisons maison NOUN Gender=Fem|Number=Plur
campagne campagne NOUN Gender=Fem|Number=Sing
campagnes campagne NOUN Gender=Fem|Number=Plur
chat chat NOUN Gender=Masc|Number=Sing
chats chat NOUN Gender=Masc|Number=Plur
petit petit ADJ Gender=Masc|Number=Sing
petits petit ADJ Gender=Masc|Number=Plur
petite petit ADJ Gender=Fem|Number=Sing
petites petit ADJ Gender=Fem|Number=Plur
fermé fermer VERB Gender=Masc|Number=Sing|VerbForm=Part
fermée fermer VERB Gender=Fem|Number=Sing|VerbForm=Part
fermées fermer VERB Gender=Fem|Number=Plur|VerbForm=Part
ferme fermer VERB Number=Sing|Person=3
prendre prendre VERB _
prend prendre VERB Number=Sing
place place NOUN Gender=Fem|Number=Sing
places place NOUN Gender=Fem|Number=Plur
de de ADP _
très très ADV _
et et CCONJ _
"""
CZECH = """
bílý bílý ADJ Case=Nom|Number=Sing|Gender=Masc|Degree=Pos
bílý bílý ADJ Case=Acc|Number=Sing|Gender=Masc|Animacy=Inan|Degree=Pos
bílého bílý ADJ Case=Gen|Number=Sing|Gender=Masc|Degree=Pos
bílého bílý ADJ Case=Acc|Number=Sing|Gender=Masc|Animacy=Anim|Degree=Pos
bílé bílý ADJ Case=Acc|Number=Plur|Gender=Masc|Degree=Pos
bílé bílý ADJ Case=Nom|Number=Sing|Gender=Neut|Degree=Pos
bělejší bílý ADJ Case=Nom|Number=Sing|Gender=Masc|Degree=Cmp
pes pes NOUN Case=Nom|Number=Sing|Gender=Masc|Animacy=Anim
psa pes NOUN Case=Gen|Number=Sing|Gender=Masc|Animacy=Anim
psa pes NOUN Case=Acc|Number=Sing|Gender=Masc|Animacy=Anim
psy pes NOUN Case=Acc|Number=Plur|Gender=Masc|Animacy=Anim
stanice stanice NOUN Case=Nom|Number=Sing|Gender=Fem
stanici stanice NOUN Case=Acc|Number=Sing|Gender=Fem
metro metro NOUN Case=Nom|Number=Sing|Gender=Neut
metra metro NOUN Case=Gen|Number=Sing|Gender=Neut
v v ADP _
"""
ENGLISH = """
fire fire NOUN Number=Sing
fires fire NOUN Number=Plur
truck truck NOUN Number=Sing
trucks truck NOUN Number=Plur
"""


def lexicon(text: str) -> WordForms:
    found = WordForms()
    for row in text.split("\n"):
        if row:
            form, lemma, upos, feats = row.split()
            some = [] if feats == "_" else [one.replace("=", ":") for one in feats.split("|")]
            found.add(lemma, form, [f"POS:{upos}", *some])
    return found


def forms_of(phrase: str, known: WordForms) -> list[str]:
    return list(PhraseForms(known).of(phrase.split()))


@pytest.mark.parametrize(
    ("phrase", "wanted"),
    [
        ("petite maison", {"petite maison", "petites maisons"}),  # no lemma, as dictionaries cite it
        ("petit maison", {"petit maison", "petite maison", "petites maisons"}),  # lemmas
        ("petit chat", {"petit chat", "petits chats"}),
        ("maison fermée", {"maison fermée", "maisons fermées"}),
        ("maison de campagne", {"maison de campagne", "maisons de campagne"}),
        ("maison de petits chats", {"maison de petits chats", "maisons de petits chats"}),
        ("très petite maison", {"très petite maison", "très petites maisons"}),
        ("petit et petit chat", {"petit et petit chat", "petits et petits chats"}),
        ("chat maison", {"chat maison", "chats maison"}),  # another noun stays
        ("maison Xyz", {"maison Xyz", "maisons Xyz"}),
        ("prendre place", {"prendre place", "prend place"}),
        ("xyz maison", set()),  # nobody knows whether it agrees
        ("de campagne", set()),
        ("très très", set()),
    ],
)
def test_words_of_french_phrases(phrase: str, wanted: set[str]) -> None:
    assert set(forms_of(phrase, lexicon(FRENCH))) == wanted


@pytest.mark.parametrize(
    ("phrase", "wanted"),
    [
        ("bílý pes", {"bílý pes", "bílého psa", "bílé psy"}),  # neither `bílé psa` nor the comparative
        ("stanice metra", {"stanice metra", "stanici metra"}),
        ("stanice v metru", {"stanice v metru", "stanici v metru"}),
    ],
)
def test_words_of_czech_phrases(phrase: str, wanted: set[str]) -> None:
    assert set(forms_of(phrase, lexicon(CZECH))) == wanted


def test_without_case_and_gender_the_last_noun_is_the_head() -> None:
    assert set(forms_of("fire truck", lexicon(ENGLISH))) == {"fire truck", "fire trucks"}


@pytest.mark.parametrize("text", [FRENCH, CZECH, ENGLISH])
def test_the_order_of_a_source_does_not_matter_and_the_given_phrase_comes_first(text: str) -> None:
    rows = [row for row in text.split("\n") if row]
    forwards, backwards = lexicon("\n".join(rows)), lexicon("\n".join(rows[::-1]))
    for phrase in ("petite maison", "maison de campagne", "bílý pes", "stanice metra", "fire truck", "prendre place"):
        found = forms_of(phrase, forwards)
        assert found == forms_of(phrase, backwards) and found[:1] in ([phrase], [])


def test_frequent_forms_come_first() -> None:
    weights = {"bílé": 0.5, "psy": 0.5, "bílého": 0.01, "psa": 0.01}
    found = list(PhraseForms(lexicon(CZECH), weights).of(["bílý", "pes"]))
    assert found == ["bílý pes", "bílé psy", "bílého psa"]


def test_only_so_many_phrases_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PHRASES", 2)
    phrases = PhraseForms(lexicon(FRENCH))
    first = phrases.of(["petite", "maison"])
    assert phrases.of(["petite", "maison"]) is first
    for word in ("chat", "place", "campagne"):
        phrases.of(["petit", word])
    again = phrases.of(["petite", "maison"])
    assert again == first and again is not first


def test_forms_have_the_features_of_their_words() -> None:
    found = PhraseForms(lexicon(FRENCH)).of(["petite", "maison"])
    assert found["petites maisons"] == dict.fromkeys(("POS:ADJ", "POS:NOUN", "Gender:Fem", "Number:Plur"), 1.0)


def without_features(text: str) -> tuple[WordForms, Mapping[str, Mapping[str, float]]]:
    """A source of lemmas alone, and what a prior knows of words: the union of their analyses."""
    known, forms, united = lexicon(text), WordForms(), dict[str, dict[str, float]]()
    for lemma in known:
        for form, features in known.of(lemma).items():
            forms.add(lemma, form)
            united.setdefault(form, {}).update(features)
    return forms, united


def test_where_a_source_has_no_features_those_of_the_prior_count() -> None:
    forms, features = without_features(FRENCH)
    assert set(PhraseForms(forms, {}, lambda: features).of(["petite", "maison"])) == {
        "petite maison",
        "petites maisons",
    }
    assert not PhraseForms(forms).of(["petite", "maison"])  # nobody knows: never the product


STEMS = ["mlad", "star", "zelen", "dlouh", "krátk", "tich", "bos"]
ENDINGS = {"ý": ["Case=Nom"], "ého": ["Case=Gen", "Case=Acc|Animacy=Anim"], "ém": ["Case=Loc"]}


def adjectives(stems: Iterable[str]) -> str:
    """Forms of adjectives, each with one analysis: a text shows no more."""
    rows = []
    for i, stem in enumerate(stems):
        for ending, analyses in ENDINGS.items():
            chosen = analyses[i % len(analyses)]
            rows.append(f"{stem}{ending} {stem}ý ADJ {chosen}|Number=Sing|Gender=Masc")
    return "\n".join(rows)


def test_rules_complete_what_a_text_does_not_show() -> None:
    """`mladého` was seen as a genitive, `psa` as an accusative; other adjectives say that both are one form."""
    dog = "\npes pes NOUN Case=Nom|Number=Sing|Gender=Masc|Animacy=Anim\npsa pes NOUN Case=Acc|Number=Sing|Gender=Masc"
    assert set(forms_of("mladý pes", lexicon(adjectives(STEMS) + dog))) == {"mladý pes", "mladého psa"}
    assert set(forms_of("mladý pes", lexicon(adjectives(STEMS[:1]) + dog))) == {"mladý pes"}


def test_a_form_without_analyses_gets_those_of_its_rule() -> None:
    known = lexicon(adjectives(STEMS) + "\npes pes NOUN Case=Nom|Number=Sing\npsu pes NOUN Case=Loc|Number=Sing")
    for ending in ENDINGS:
        known.add("nový", f"nov{ending}")
    features = {"nový": {"POS:ADJ": 1.0, "Case:Nom": 1.0}, "novém": {"POS:ADJ": 0.5, "Case:Ins": 0.5, "Case:Nom": 0.5}}
    assert set(PhraseForms(known, {}, lambda: features).of(["nový", "pes"])) == {"nový pes", "novém psu"}


def test_features_that_name_lemmas_say_forms() -> None:
    features = {"psi": {"Lemma:pes": 1.0, "Case:Nom": 1.0}, "a": {"POS:CCONJ": 1.0}, "psa": {"Lemma:pes": 1.0}}
    found = forms_of_features(features)
    assert list(found.of("pes")) == ["psi", "psa"] and len(found) == 1


# Which forms agree: beside all products of forms and analyses, and by laws
VALUES = {
    "Case": ("Nom", "Gen", "Acc"), "Number": ("Sing", "Plur"), "Gender": ("Masc", "Fem"), "Animacy": ("Anim", "Inan"),
}  # fmt: skip
Phrase = list[dict[str, list[Analysis]]]


def drawn(rng: random.Random) -> Phrase:
    """Up to three words of up to four forms with up to three analyses, some of them with several values of a group."""

    def analysis() -> Analysis:
        chosen = {group: rng.sample(some, rng.randint(0, len(some) // 2 + 1)) for group, some in VALUES.items()}
        return frozenset(f"{group}:{value}" for group, some in chosen.items() for value in some[:2])

    return [
        {f"{i}{form}": [analysis() for _ in range(rng.randint(1, 3))] for form in range(rng.randint(1, 4))}
        for i in range(rng.randint(1, 3))
    ]


def fast(phrase: Phrase) -> list[tuple[str, ...]]:
    return agreeing([{form: [values_of(one) for one in some] for form, some in forms.items()} for forms in phrase])


def slow(phrase: Phrase) -> set[tuple[str, ...]]:
    """All products, by the definition."""
    return {
        choice
        for choice in product(*phrase)
        if any(all_agree(analyses) for analyses in product(*(phrase[i][form] for i, form in enumerate(choice))))
    }


def all_agree(analyses: tuple[Analysis, ...]) -> bool:
    for group in AGREEING:
        said = [{name for name in one if name.startswith(f"{group}:")} for one in analyses]
        with_values = [some for some in said if some]
        if with_values and not set.intersection(*with_values):
            return False
    return True


@pytest.mark.parametrize("seed", range(60))
def test_what_agrees_is_what_the_definition_says_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    phrase = drawn(rng)
    found = fast(phrase)
    assert len(found) == len(set(found)) and set(found) == slow(phrase)
    for order in permutations(range(len(phrase))):
        moved = {
            tuple(choice[order.index(i)] for i in range(len(order))) for choice in fast([phrase[i] for i in order])
        }
        assert moved == set(found)
    mixed = [dict(rng.sample(list(forms.items()), len(forms))) for forms in phrase]
    assert fast(mixed) == found


@pytest.mark.parametrize("most", [1, 3, 8])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_choices_are_found_in_order(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where few are kept from word to word; weights have few values, so that many sums are equal."""
    rng = random.Random(seed)
    phrase = drawn(rng)
    weights = [{form: float(rng.randint(-2, 0)) for form in forms} for forms in phrase]
    best = sorted(slow(phrase), key=lambda choice: (-sum(weights[i][form] for i, form in enumerate(choice)), choice))
    monkeypatch.setattr(form_analyses, "MOST_CHOICES", most)
    values = [{form: [values_of(one) for one in some] for form, some in forms.items()} for forms in phrase]
    assert agreeing(values, weights) == best[:most]


def test_a_phrase_of_many_words_has_the_forms_that_its_words_have_by_themselves() -> None:
    """Words that agree with all: the best forms of the phrase are those of 16 words, one or two of them changed."""
    words = [{f"{i}a": [values_of([])], f"{i}b": [values_of([])]} for i in range(16)]
    weights = [{f"{i}a": 0.0, f"{i}b": -1.0 - i / 1024} for i in range(16)]
    found = agreeing(words, weights)
    changed = [[i for i, form in enumerate(choice) if form.endswith("b")] for choice in found[: 1 + 16 + 120]]
    assert len(found) == form_analyses.MOST_CHOICES and changed[:17] == [[], *([i] for i in range(16))]
    assert all(len(some) == 2 for some in changed[17:])
