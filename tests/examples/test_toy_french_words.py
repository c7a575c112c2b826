"""Words of the embedded corpus: paradigms, and forms before a vowel."""

from toy_french.closed import OF, THIRD_PRONOUNS, before
from toy_french.words import AGREEMENT_CELLS, Word, adjective, noun, verb


def test_paradigms() -> None:
    fermer, finir = verb("fermer"), verb("finir")
    assert fermer.forms["Pres", "3", "Plur"].form == "ferment"
    assert fermer.forms["Imp", "1", "Sing"].form == "fermais"
    assert fermer.forms["Fut", "2", "Plur"].form == "fermerez"
    assert [fermer.forms[cell].form for cell in AGREEMENT_CELLS] == ["fermée", "fermées", "fermé", "fermés"]
    assert finir.forms["Pres", "3", "Plur"].form == "finissent"
    assert finir.forms["Fem", "Plur"].form == "finies"
    assert noun("cheval", "Masc").forms["Masc", "Plur"].form == "chevaux"
    assert noun("bateau", "Masc").forms["Masc", "Plur"].form == "bateaux"
    for lemma, forms in {
        "vert": "verte vertes vert verts",
        "ancien": "ancienne anciennes ancien anciens",
        "actif": "active actives actif actifs",
        "royal": "royale royales royal royaux",
        "cruel": "cruelle cruelles cruel cruels",
        "curieux": "curieuse curieuses curieux curieux",
        "rouge": "rouge rouges rouge rouges",
    }.items():
        assert [adjective(lemma).forms[cell].form for cell in AGREEMENT_CELLS] == forms.split()
    assert adjective("rouge").forms["Fem", "Plur"].feats == "Number=Plur"
    assert adjective("curieux").forms["Masc", "Plur"].feats == "Gender=Masc"
    assert THIRD_PRONOUNS["Fem", "Plur"].form == "elles"


def test_before_a_vowel() -> None:
    assert before(OF, "arles").form == "d'"
    assert before(OF, "37").form == "de"
    assert before(Word("que", "que", "SCONJ"), "elle") == Word("qu'", "que", "SCONJ")
