"""Tab-separated lexicons: union, counted remarks, and every malformed row."""

import gzip
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lexicons import read_conllu, read_tsv_lexicon, read_unimorph, read_values
from ud_values import unknown_values

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import is_header
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.readers.conllu import iter_conllu_words
from fairseq_llrnn.lexicon.readers.unimorph import FEATURES, NAMES, PART_OF_SPEECH, tags_features

FURTHER = "rows with a further analysis (same form, lemma and UPOS, other FEATS): the form has all features"


def write(path: Path, *rows: str) -> Path:
    path.write_text("".join(row.replace(" ", "\t") + "\n" for row in rows), encoding="utf-8")
    return path


def test_columns_in_another_order_are_noticed(tmp_path: Path) -> None:
    """Lemmas in the column of parts of speech are noticed. Real tags are not, for any number of rows."""
    words = [f"w{i}" for i in range(300)]
    swapped = write(tmp_path / "swapped.tsv", *(f"{word} NOUN {word} _" for word in words))
    note = "different parts of speech, more than a tag set has; are the columns form, lemma, UPOS, FEATS?"
    assert read_tsv_lexicon(swapped, lowercase=False).notes == {note: 300}
    right = write(tmp_path / "right.tsv", *(f"{word} {word} NOUN _" for word in words))
    assert not read_tsv_lexicon(right, lowercase=False).notes


def contents(lexicon: Lexicon) -> dict[str, dict[str, float]]:
    return {word: dict(lexicon.features(word)) for word in lexicon}


def test_rows_become_features(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.tsv", "couvent couvent NOUN Gender=Masc|Number=Sing", "couvent couver VERB _", "hé hé _ _",
    )  # fmt: skip
    assert contents(read_tsv_lexicon(path, lowercase=False)) == {
        "couvent": {"POS:NOUN": 1.0, "Gender:Masc": 1.0, "Number:Sing": 1.0, "POS:VERB": 1.0},
    }


def test_further_columns_a_header_and_gzip_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"form\tlemma\tUPOS\tFEATS\tcount\n\nchat\tchat\tNOUN\t\t12\n# \t#\tSYM\t_\t3\n"))
    lexicon = read_tsv_lexicon(path, lowercase=False)
    assert contents(lexicon) == {"chat": {"POS:NOUN": 1.0}, "#": {"POS:SYM": 1.0}}
    assert not lexicon.notes


def test_the_word_form_is_no_header(tmp_path: Path) -> None:
    lexicon = read_tsv_lexicon(write(tmp_path / "a.tsv", "form form NOUN Number=Sing"), lowercase=False)
    assert contents(lexicon) == {"form": {"POS:NOUN": 1.0, "Number:Sing": 1.0}}


def test_a_header_further_down_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "chat chat NOUN _", "form lemma UPOS FEATS")
    with pytest.raises(DataError, match="a.tsv, line 2: expected FEATS that are _ or Key=Value.*found 'FEATS'"):
        read_tsv_lexicon(path, lowercase=False)


def test_lower_casing_unites_without_remarks(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "Pierre Pierre PROPN _", "pierre pierre NOUN Gender=Fem", "PIERRE pierre NOUN _")
    lexicon = read_tsv_lexicon(path, lowercase=True)
    assert contents(lexicon) == {"pierre": {"POS:PROPN": 1.0, "POS:NOUN": 1.0, "Gender:Fem": 1.0}}
    assert not lexicon.notes


def test_surface_rows_repetitions_and_contradictions_are_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.tsv", "du _ _ _ 4", "tour tour NOUN Gender=Masc 3", "tour tour NOUN Gender=Masc 9",
        "tour tour NOUN Gender=Fem 2", "tour tour NOUN Gender=Masc 1", "tour tourer VERB _ 2",
    )  # fmt: skip
    lexicon = read_tsv_lexicon(path, lowercase=False)
    assert contents(lexicon) == {"tour": {"POS:NOUN": 1.0, "Gender:Masc": 1.0, "Gender:Fem": 1.0, "POS:VERB": 1.0}}
    assert lexicon.notes == {FURTHER: 1}  # what is left out, tests/files/test_read_counts.py asks


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["chat chat NOUN"], r"line 1: expected at least 4 columns \(form, lemma, UPOS, FEATS\) separated by tabs, "),
        (["chat chat NOUN"], "found 3 columns: 'chat.tchat.tNOUN'"),
        (["chat"], "found 1 columns: 'chat'"),
        (["chat chat NOUN _ 3", "chien chien NOUN _"], "line 2: expected 5 columns, as in the rows before, separated"),
        (["chat chat NOUN _", "chien chien NOUN _ 2"], "line 2: expected 4 columns, as in the rows before, .* found 5"),
        (['chat chat NOUN "Gender=Fem,Masc"'], "line 1: expected FEATS that are _ or Key=Value .*found '\"Gender"),
        (["chat chat NOUN Fem"], "line 1: expected FEATS that are _ or Key=Value pairs .*found 'Fem'"),
        ([" chat NOUN _"], r"line 1: column 1 \(form\) is empty; expected a word"),
        ([], "a.tsv: expected rows with form, lemma, UPOS, FEATS, found none; is the file empty?"),
        (["form lemma UPOS FEATS"], "found none; is the file empty?"),
        (["du _ _ _"], "found none; is the file empty?"),
        ([f"chat chat NOUN _ {10**12 + 1}"], "line 1: expected a count up to 1,000,000,000,000, found '100"),
        ([f"chat chat NOUN _ {'9' * 5000}"], "line 1: expected a count up to 1,000,000,000,000, found '999"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, rows: list[str], message: str) -> None:
    path = write(tmp_path / "a.tsv", *rows)
    with pytest.raises(DataError, match=message) as error:
        read_tsv_lexicon(path, lowercase=False)
    assert str(error.value).startswith(str(path))


def test_bad_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes("chat\tchat\tNOUN\t_\nété\tété\tNOUN\t_\n".encode("latin-1"))
    with pytest.raises(DataError, match="a.tsv, line 2, byte 1: expected UTF-8, found the byte 0xe9"):
        read_tsv_lexicon(path, lowercase=False)


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["la", "tour", "Tour", "form"]),
        st.sampled_from(["le", "tour", "_"]),
        st.sampled_from(["DET", "NOUN"]),
        st.sampled_from(["_", "Gender=Fem", "Gender=Masc", "Gender=Fem,Masc|Number=Sing"]),
    ),
    min_size=1,
)


@settings(deadline=None)
@given(rows=ROWS, random=st.randoms(), lowercase=st.booleans())
def test_the_order_of_rows_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, rows: list, random: Random, lowercase: bool
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    straight = read_tsv_lexicon(write(folder / "a", *map(" ".join, rows)), lowercase=lowercase)
    random.shuffle(rows)
    shuffled = read_tsv_lexicon(write(folder / "b", *map(" ".join, rows)), lowercase=lowercase)
    assert contents(straight) == contents(shuffled)
    assert straight.notes == shuffled.notes


@pytest.mark.slow
@pytest.mark.real_data("ud-french-gsd-1.4")
def test_the_french_lexicon(shared_data: Path) -> None:
    lexicon = read_tsv_lexicon(shared_data / "ud-french-gsd-1.4" / "lexicon.tsv.gz", lowercase=True)
    assert len(lexicon) == 42_493
    assert lexicon.notes == {FURTHER: 1494}
    assert {"POS:VERB", "Gender:Fem", "VerbForm:Part"} <= set(lexicon.features("représentée"))


@pytest.mark.parametrize("tag", ["noun", "Noun", "NOUN", "nOuN"])
def test_parts_of_speech_in_any_case(tag: str, tmp_path: Path) -> None:
    (tmp_path / "lexicon.tsv").write_text(f"chat\tchat\t{tag}\t_\nchat\tchat\tNOUN\t_\nmer\tmer\tNCfs\t_\n")
    lexicon = read_tsv_lexicon(tmp_path / "lexicon.tsv", lowercase=False)
    assert set(lexicon.features("chat")) == {"POS:NOUN"} and set(lexicon.features("mer")) == {"POS:NCfs"}
    row = "1\tchat\tchat\t{}\t_\t_\t_\t_\t_\t_\n"
    (tmp_path / "a.conllu").write_text(row.format(tag) + row.format("NCfs").replace("1\tchat", "2\tmer"))
    words = next(iter_conllu_words(tmp_path / "a.conllu", False))
    assert [word.features for word in words] == [("POS:NOUN",), ("POS:NCfs",)]


# Real-valued features from a file
def write_values(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "values.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_values(tmp_path: Path) -> None:
    rows = "Paris\tSize:Log\t6.3\n\nlyon\tSize:Log\t-0.5\nparis\tPOS:X\t1\n"
    lexicon = read_values(write_values(tmp_path, rows), lowercase=True)
    assert lexicon.features("paris") == {"Size:Log": 6.3, "POS:X": 1.0}
    assert lexicon.features("lyon") == {"Size:Log": -0.5}
    assert "Paris" in read_values(write_values(tmp_path, "Paris\tSize:Log\t6.3\n"), lowercase=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected rows of word, feature and value, found none"),
        ("a\tSize:Log\n", "line 1: expected word, feature and value with tabs between, found 2 columns"),
        ("a\tSize:Log\t1\na\tSize:Log\t2\n", "line 2: 'Size:Log' of word 'a' was already given in line 1"),
        ("a\tSize:Log\tbig\n", "line 1: expected a number as value of 'Size:Log', found 'big'"),
        ("a\tSize:Log\tnan\n", "line 1: word 'a': feature 'Size:Log' has the value nan"),
        ("a\tsize\t1\n", "line 1: word 'a': 'size' is no feature name"),
        ("a\tTOPFORM:a\t1\n", "line 1: word 'a': feature 'TOPFORM:a' has a group that is reserved for"),
        ("a\tEvidence:Url\t1\n", "feature 'Evidence:Url' has a group that is reserved for indicators and evidence"),
    ],
)
def test_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_values(write_values(tmp_path, text), lowercase=True)
    assert message in str(caught.value)


# Lexicons of UniMorph: the table of tags, what is united, what is kept, and every malformed row
def write_unimorph(tmp_path: Path, text: str) -> Path:
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
    plain, packed = write_unimorph(tmp_path, text), tmp_path / "packed"
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
    assert "ırmak" in read_unimorph(write_unimorph(tmp_path, "ırmak\tIRMAK\tN\n"), lowercase=True, language="tr")


def test_the_features_of_a_form_are_those_that_a_treebank_gives_it(tmp_path: Path) -> None:
    treebank = tmp_path / "a.conllu"
    feats = "Case=Ela|Number=Plur|Number[psor]=Sing|Person[psor]=1"
    treebank.write_text(f"1\tházaimból\tház\tNOUN\t_\t{feats}\t0\troot\t_\t_\n\n", encoding="utf-8")
    unimorph = write_unimorph(tmp_path, "ház\tházaimból\tN;IN+ABL;PL;PSS1S\n")
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
def test_errors_in_unimorph(tmp_path: Path, text: str, message: str) -> None:
    path = write_unimorph(tmp_path, text)
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
