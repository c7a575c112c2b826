"""Forms of lemmas from files and packages, and what is wrong with a source of forms."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.lexicon.languages.base import Spelling
from fairseq_llrnn.lexicon.readers.apertium import find_analyser
from fairseq_llrnn.lexicon.word_forms import WordForms, read_word_forms

CASED, LOWER = Spelling(False), Spelling(True)
FILES = {
    "lexicon": "Psi\tpes\tNOUN\tCase=Nom|Number=Plur\npsa\tpes\tNOUN\tCase=Gen|Number=Sing\npsa\tpes\tNOUN\tCase=Acc\n",
    "unimorph": "pes\tPsi\tN;NOM;PL\n\npes\tpsa\tN;GEN;SG\npes\t-\tN;VOC\n",
    "treebank": (
        "1\tPsi\tpes\tNOUN\t_\tCase=Nom|Number=Plur\t2\tnsubj\t_\t_\n2\tpsa\tpes\tNOUN\t_\tCase=Gen\t0\troot\t_\t_\n\n"
    ),
}


def read(tmp_path: Path, kind: str, text: str, spelling: Spelling = CASED) -> WordForms:
    path = tmp_path / f"{kind}.txt"
    path.write_text(text, encoding="utf-8")
    return read_word_forms([f"{kind}:{path}"], (), spelling)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_says_the_forms_of_a_lemma(kind: str, tmp_path: Path) -> None:
    found = read(tmp_path, kind, FILES[kind])
    assert list(found.of("pes")) == ["Psi", "psa"] and not found.of("psa") and list(found) == ["pes"]
    assert {"POS:NOUN", "Case:Nom", "Number:Plur"} == set(found.of("pes")["Psi"])
    assert "Case:Gen" in found.of("pes")["psa"]


@pytest.mark.parametrize("kind", FILES)
def test_in_lower_cased_text_forms_are_lower_cased(kind: str, tmp_path: Path) -> None:
    assert list(read(tmp_path, kind, FILES[kind], LOWER).of("pes")) == ["psi", "psa"]


def test_several_places_are_united(tmp_path: Path) -> None:
    for kind, text in FILES.items():
        (tmp_path / kind).write_text(text, encoding="utf-8")
    found = read_word_forms([f"{kind}:{tmp_path / kind}" for kind in FILES], (), CASED)
    assert len(found) == 1 and {"Case:Gen", "Case:Acc", "Number:Sing"} < set(found.of("pes")["psa"])


@pytest.mark.skipif(importlib.util.find_spec("simplemma") is None, reason="simplemma is not installed")
def test_a_package_says_the_forms_that_the_dictionary_has() -> None:
    words = ["psa", "psi", "kočka", "kočky", "."]
    found = read_word_forms(["lemmas:cs"], words, LOWER)
    assert set(found.of("kočka")) == {"kočka", "kočky"}


@pytest.mark.skipif(shutil.which("lt-proc") is None, reason="lt-proc is absent: apt install lttoolbox apertium-fra-cat")
def test_apertium_says_the_forms_that_the_text_has() -> None:
    try:
        analyser = find_analyser("fra-cat")
    except DataError:
        pytest.skip("the French analyser is absent: apt install apertium-fra-cat")
    words = ["<s>", "grand", "grandes", "chats", "lyon"]
    for named in ("fra-cat", str(analyser)):
        found = read_word_forms([f"apertium:{named}"], words, LOWER)
        assert set(found.of("grand")) == {"grand", "grandes"} and set(found.of("lyon")) == {"lyon"}
        assert {"POS:ADJ", "Number:Plur", "Gender:Fem"} <= set(found.of("grand")["grandes"])
    with pytest.raises(DataError, match="there is no Apertium analyser 'xx-yy': expected the path of an"):
        read_word_forms(["apertium:xx-yy"], words, LOWER)


def test_hunspell_says_forms_that_no_text_has(tmp_path: Path) -> None:
    (tmp_path / "fr.aff").write_text("SET UTF-8\nSFX S Y 1\nSFX S 0 s .\n", encoding="utf-8")
    (tmp_path / "fr.dic").write_text("2\nChat/S\nmer/S\n", encoding="utf-8")
    found = read_word_forms([f"hunspell:{tmp_path / 'fr.dic'}"], ["chats"], LOWER)
    assert set(found.of("chat")) == {"chat", "chats"} and len(found) == 1
    with pytest.raises(DataError, match="expected a dictionary of hunspell, FILE.dic with FILE.aff beside it"):
        read_word_forms([f"hunspell:{tmp_path / 'fr.txt'}"], ["chats"], LOWER)


def test_features_that_name_lemmas_say_forms() -> None:
    features = {"psi": {"Lemma:pes": 1.0, "Case:Nom": 1.0}, "a": {"POS:CCONJ": 1.0}, "psa": {"Lemma:pes": 1.0}}
    found = WordForms.of_lexicon(features, features.__getitem__)
    assert list(found.of("pes")) == ["psi", "psa"] and len(found) == 1


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            "words.tsv", "--term-forms words.tsv: expected lexicon:FILE, unimorph:FILE, treebank:FILE, "
            "hunspell:FILE.dic, lemmas:CODE (e.g. lemmas:cs) or apertium:MODE_OR_FILE, found something else",
        ),
        ("apertium:", "expected lexicon:FILE"),
        ("ispell:cs", "expected lexicon:FILE"),
        ("lemmas:", "expected lexicon:FILE"),
        ("lemmas:klingon", "--term-forms lemmas:klingon: expected a language that some package knows"),
        ("lemmas:zh", "--term-forms lemmas:zh: expected a language"),
        ("lemmas:ja", "--term-forms lemmas:ja: expected a language of simplemma, found ja, which it lacks; it has ar"),
    ],
)  # fmt: skip
def test_an_unknown_place_or_language_is_refused(named: str, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        read_word_forms([named], ("a",), CASED)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pes\tpsa\n", "expected at least 3 columns (lemma, form, features) separated by tabs, found 2"),
        ("pes\t\tN\n", "column 2 (form) is empty"),
        ("\n", "expected rows with lemma, form, features, found none"),
        ("psa\tpes\tNOUN\tCase=Acc\n", "found the part of speech NOUN; a file of form, lemma, UPOS and FEATS is a"),
    ],
)
def test_unimorph_rows_of_another_shape_are_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(said)):
        read(tmp_path, "unimorph", text)


def test_unimorph_rows_without_a_lemma_are_left_out(tmp_path: Path) -> None:
    assert list(read(tmp_path, "unimorph", "\tpsa\tN;GEN;SG\npes\tpsi\tN;NOM;PL\n")) == ["pes"]
