"""Lexicons of UniMorph: the table of tags, what is united, what is kept, and every malformed row."""

import gzip
from pathlib import Path

import pytest
from lexicons import read_conllu, read_unimorph
from ud_values import unknown_values

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import is_header
from fairseq_llrnn.lexicon.readers.unimorph import FEATURES, NAMES, PART_OF_SPEECH, tags_features


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hun"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_name_of_the_table_is_one_of_universal_dependencies() -> None:
    tables = PART_OF_SPEECH | FEATURES
    assert all(tag == tag.upper() for tag in tables)
    assert unknown_values(tables) == []


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ("N;ACC;PL", "POS:NOUN Case:Acc Number:Plur"),
        ("N;IN+ABL;SG", "POS:NOUN Case:Ela Number:Sing"),  # Hungarian házból, Finnish talosta
        ("N;ESS;SG", "POS:NOUN Case:Loc Number:Sing"),  # Russian о доме
        ("N;FRML;SG", "POS:NOUN Case:Ess Number:Sing"),  # Finnish opettajana
        ("N;{NOM/ACC};SG", "POS:NOUN Case:Nom Case:Acc Number:Sing"),
        ("ADJ;MASC+FEM;PL", "POS:ADJ Gender:Masc Gender:Fem Number:Plur"),
        ("N;NOM;SG;PSS1P", "POS:NOUN Case:Nom Number:Sing Number[psor]:Plur Person[psor]:1"),
        ("V;PST", "POS:VERB Tense:Past VerbForm:Fin"),
        ("V;IND;PRS;3;SG", "POS:VERB Mood:Ind Tense:Pres Person:3 Number:Sing VerbForm:Fin"),
        ("V;V.PTCP;PST", "POS:VERB VerbForm:Part Tense:Past"),
        ("V;NFIN;IMP+SBJV", "POS:VERB VerbForm:Inf Mood:Imp Mood:Sub"),  # English base form
        ("V;ARGAB3S;ARGIO1P", "POS:VERB Number[abs]:Sing Person[abs]:3 Number[io]:Plur Person[io]:1"),
        ("CONJ", "POS:CCONJ POS:SCONJ"),
        ("n; acc", "POS:NOUN Case:Acc"),
        ("N;LGSPEC1", "POS:NOUN UniMorph:LGSPEC1"),
        ("V;PRS;NOM(1;SG)", "POS:VERB Tense:Pres UniMorph:NOM(1;SG) VerbForm:Fin"),
        ("N;ACC/ODD ONE", "POS:NOUN Case:Acc UniMorph:ODD_ONE"),
        ("N;;{}", "POS:NOUN"),
    ],
)
def test_what_tags_say(tags: str, names: str) -> None:
    assert tags_features(tags) == tuple(names.split())


def test_forms_have_all_their_analyses(tmp_path: Path) -> None:
    text = (
        "ház\tházat\tN;ACC;SG\n\nszőlő\tSzőlő\tN;NOM;SG\tszőlő\nszőlő\tszőlő\tADJ;LGSPEC2\nmegy\tment volna\tV;COND\n"
        "van\t—\tV;PRS\n"
    )
    plain, packed = write(tmp_path, text), tmp_path / "packed"
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        lexicon = read_unimorph(path, lowercase=True)
        assert {word: set(lexicon.features(word)) for word in lexicon} == {
            "házat": {"POS:NOUN", "Case:Acc", "Number:Sing"},
            "szőlő": {"POS:NOUN", "Case:Nom", "Number:Sing", "POS:ADJ", "UniMorph:LGSPEC2"},
        }
        assert lexicon.notes == {
            "kinds of UniMorph tags that Universal Dependencies lacks, kept as they are (UniMorph:LGSPEC2)": 1,
        }
    assert "Szőlő" in read_unimorph(plain, lowercase=False)
    assert "ırmak" in read_unimorph(write(tmp_path, "ırmak\tIRMAK\tN\n"), lowercase=True, language="tr")


def test_the_features_of_a_form_are_those_that_a_treebank_gives_it(tmp_path: Path) -> None:
    treebank = tmp_path / "a.conllu"
    feats = "Case=Ela|Number=Plur|Number[psor]=Sing|Person[psor]=1"
    treebank.write_text(f"1\tházaimból\tház\tNOUN\t_\t{feats}\t0\troot\t_\t_\n\n", encoding="utf-8")
    unimorph = write(tmp_path, "ház\tházaimból\tN;IN+ABL;PL;PSS1S\n")
    ours, theirs = read_unimorph(unimorph, lowercase=True), read_conllu(treebank, lowercase=True)
    assert ours.features("házaimból") == theirs.features("házaimból")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected rows with lemma, form, features, found none; is the file empty?"),
        ("ház\tház\tN;NOM;SG\nházak\tház\tNOUN\n", "line 2: expected UniMorph features such as N;NOM;SG in column 3, "
         "found the part of speech NOUN; a file of form, lemma, UPOS and FEATS is a lexicon: give it as one "
         "(--lexicon)"),
        ("a\tb\tN\n\nház\tházat\n", "line 3: expected at least 3 columns (lemma, form, features) separated by tabs, "
         "found 2 columns: 'ház\\tházat'; fix the row"),
        ("ház\t \tN\n", "line 1: column 2 (form) is empty; expected a word: fill it, or remove the row"),
        ("ház\tházat\t\n", "line 1: column 3 (features) is empty; expected a word: fill it, or remove the row"),
    ],
)  # fmt: skip
def test_errors(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_unimorph(path, lowercase=True)
    assert str(caught.value) in (f"{path}: {message}", f"{path}, {message}")


@pytest.mark.parametrize(
    "names", ["lemma\tform\tmorphology", "lemma\tinflected form\tgrammar", "lexeme\twordforms\ttags", "base\tword\tx"]
)
def test_a_header_may_have_other_names(names: str) -> None:
    assert is_header(names.split("\t"), NAMES, "a.um, line 1")


@pytest.mark.parametrize("row", ["lemma\tform\tV;PRS", "form\tforms\tN;PL", "word\twords\tN;PL"])
def test_words_that_are_names_of_columns_are_words(row: str) -> None:
    assert not is_header(row.split("\t"), NAMES, "a.um, line 1")
