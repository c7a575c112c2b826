"""The lexicon's table: round trip of any content, and rejection of other files."""

import io
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lexicons import read_table

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import FILLERS, is_blank
from fairseq_llrnn.lexicon.features import RESERVED_GROUPS, Lexicon, feature_group
from fairseq_llrnn.lexicon.lexicon_table import HEADER, ReadRequest, Row, Table, as_features, parsed, written
from fairseq_llrnn.lexicon.merge_sources import gather
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import SOURCES, Source
from fairseq_llrnn.lexicon.unknown_word_features import TextWords

ROW = "chats\tchat\tNOUN\tGender=Masc|Number=Plur\t3\tconllu\tno\t_"
CHARACTERS = st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zs", "Zl", "Zp"])
TEXT = st.text(CHARACTERS, min_size=1, max_size=5).filter(lambda text: not is_blank(text))
ODD = st.text(st.sampled_from("ab\\|=,@:\t\n_.é"), min_size=1, max_size=4)
GROUP = (TEXT | ODD).filter(lambda text: ":" not in text and text[0] != '"' and text not in RESERVED_GROUPS)
VALUES = st.floats(-1e6, 1e6) | st.sampled_from([1.0, 0.25, 0.0])
NAMES = st.builds("{}:{}".format, GROUP | st.sampled_from(["POS", "Case"]), TEXT | ODD | st.sampled_from(["NOUN", "x"]))
FEATURES = st.dictionaries(NAMES, VALUES, max_size=4).map(as_features)
ROWS = st.builds(
    Row, form=TEXT, lemma=st.just("") | TEXT.filter(lambda lemma: lemma != "_"), features=FEATURES,
    source=TEXT, guessed=st.booleans(), values=FEATURES,
)  # fmt: skip


def file_of(table: Table) -> str:
    table.write(text := io.StringIO())
    return text.getvalue()


def contents(lexicon: Lexicon) -> dict[str, dict[str, float]]:
    return {word: dict(lexicon.features(word)) for word in lexicon}


@pytest.mark.parametrize("form", ["", *FILLERS])
def test_an_invisible_form_is_one_error(form: str, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(file_of(Table([(Row(form, "", ()), 1)])), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2: column 1 \(form\) is (blank|empty)"):
        read_table("lexicon", path)


@given(rows=st.dictionaries(ROWS, st.integers(0, 10**12), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read_again(rows: Mapping[Row, int], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("table") / "words.tsv"
    text = file_of(table := Table(rows.items()))
    path.write_text(text, encoding="utf-8", newline="")
    again = read_table("lexicon", path)
    assert again.rows == table.rows and contents(again.lexicon()) == contents(table.lexicon())
    assert file_of(again) == text == file_of(Table(reversed(rows.items())))


@given(features=FEATURES)
def test_features_are_written_one_way(features: tuple[tuple[str, float], ...]) -> None:
    assert parsed(written(features)) == features


def test_it_is_as_a_person_reads_it() -> None:
    table = Table([
        (Row("été", "être", as_features(["POS:AUX", "VerbForm:Part"]), "conllu"), 2),
        (Row("a b", "a", as_features({"POS:NOUN": 0.5, "POS:VERB": 0.25, "Case:a,b": 1.0}), "guess", True), 0),
        (Row("12", values=as_features({"Size:Log": 2.5}), source="values"), 0),
        (Row("x", features=as_features(["POS:noun", "Gender:Fem", "Gender:Masc"]), source="python"), 0),
    ])  # fmt: skip
    assert file_of(table).splitlines() == [
        HEADER,
        "12\t_\t_\t_\t0\tvalues\tno\tSize=Log@2.5",
        "a b\ta\t_\tCase=a\\,b|POS=NOUN@0.5,VERB@0.25\t0\tguess\tyes\t_",
        "x\t_\t_\tGender=Fem,Masc|POS=noun\t0\tpython\tno\t_",
        "été\têtre\tAUX\tVerbForm=Part\t2\tconllu\tno\t_",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (ROW.removesuffix("\t_"), "expected 8 columns (form, lemma, UPOS, FEATS, count, source, guessed, values)"),
        (f"{ROW}\t_", "expected 8 columns"),
        (ROW.replace("chats", ""), "column 1 (form) is empty"),
        (ROW.replace("Gender=Masc", "Gender"), "expected _ or Name=Value pairs joined by |, such as Gender=Fem|Numbe"),
        (ROW.replace("Gender=Masc", "Gender=Masc=Fem"), "with the part 'Gender=Masc=Fem'; fix the row"),
        (ROW.replace("Masc", "Masc,Masc"), "expected each feature once, found 'Gender=Masc' again; fix the row"),
        (ROW.replace("Masc", "Masc@often"), "expected a finite number of at most 1,000,000 as value of 'Gender:Masc',"),
        (ROW.replace("Masc", "Masc@nan"), "found 'nan'; fix the row"),
        (ROW.replace("Gender", "TOPFORM"), "'TOPFORM:Masc' has a group that is reserved for indicators and evidence"),
        (ROW.replace("Gender=Masc|Number=Plur", '"Gender=Fem,Masc"'), "begins with a quotation mark; save the table"),
        (ROW.replace("\t3\t", "\t-3\t"), "expected a count up to 1,000,000,000,000 in column 5, found '-3'; "
         "give a number, or 0"),
        (ROW.replace("\t3\t", f"\t{'9' * 5000}\t"), "expected a count up to 1,000,000,000,000 in column 5, found"),
        (ROW.replace("\tno\t", "\tnein\t"), "expected yes or no in column 7 (guessed), found 'nein'; fix it"),
    ],
)
def test_damaged_rows_are_refused(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(f"{HEADER}\n{ROW}\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError) as raised:
        read_table("lexicon", path)
    assert str(raised.value).startswith(f"{path}, line 3: ") and message in str(raised.value)


def test_damaged_headers_and_empty_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(f"{HEADER.replace('UPOS', 'POS')}\n{ROW}\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"{path}, line 1: expected the header form, lemma, UPOS, FEATS,"):
        read_table("lexicon", path)
    path.write_text(f"{HEADER}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"expected rows with form, lemma, .*, found none; is the file empty\?"):
        read_table("lexicon", path)


def test_words_of_a_table_are_as_they_are(tmp_path: Path) -> None:
    """Words of a table keep their case. Those of an older lexicon without case information are lower-cased."""
    path = tmp_path / "words.tsv"
    path.write_text(f"{HEADER}\n{ROW.replace('chat', 'Chat')}\n", encoding="utf-8")
    assert [(row.form, row.lemma) for row in read_table("lexicon", path).rows] == [("Chats", "Chat")]
    path.write_text("Chats\tChat\tNOUN\t_\n", encoding="utf-8")
    assert [(row.form, row.lemma) for row in read_table("lexicon", path).rows] == [("chats", "chat")]


def test_guesses_stand_for_analyses_and_values_beside_them() -> None:
    table = Table([
        (Row("chats", "chat", as_features(["POS:NOUN"]), "conllu"), 1),
        (Row("chats", "", as_features({"POS:VERB": 0.5}), "guess", True), 1),
        (Row("chats", source="values", values=as_features({"Size:Log": 2.0, "Stem:chat": 1.0})), 1),
        (Row("mer", "", (), "guess", True), 0), (Row("la mer", "", as_features(["POS:X"]), "lexicon"), 0),
    ])  # fmt: skip
    assert contents(table.lexicon()) == {"chats": {"POS:VERB": 0.5, "Size:Log": 2.0}, "mer": {}}
    assert table.morphemes() == {"chats": {"Stem:chat": 1.0}}


def test_every_reader_is_an_option_and_gives_rows() -> None:
    """Every reader feeds the table (readers of other packages: tests/test_third_party.py)."""
    own = {field.name for field in fields(LexiconOptions)}
    assert own >= SOURCES.keys()
    settings_of = {"lemma_floor", "morpheme_floor", "guess", "keep_case", "lower", "normalize"}
    assert own - SOURCES.keys() - settings_of == {"language", "morphemes"}  # findings.py, segments.py


@pytest.mark.parametrize("name", SOURCES)
def test_every_reader_is_asked_for_all_words_of_a_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers look up the words of the dictionary and all others of the text, as in `llrnn lexicon`."""
    answered: list[object] = []

    def rows(place: str, asked: ReadRequest) -> Iterator[tuple[Row, int]]:
        answered.append(asked.words)
        yield Row("chat"), 0

    monkeypatch.setitem(SOURCES, name, Source(rows))  # type: ignore[arg-type]
    monkeypatch.setattr(LexiconOptions, "check", lambda self, called=str: None)  # of places, which are none here
    options = LexiconOptions(**{name: "place"})  # type: ignore[arg-type]
    gather(options, TextWords({"chat": 1, "mer": 0}, ["va", "chat"]))
    gather(options, TextWords({}, ["va"]))
    gather(options)
    assert answered == [["chat", "mer", "va"], ["va"], None]


def test_python_s_words_are_rows() -> None:
    table = gather(LexiconOptions(lexicon={"chat": ["POS:NOUN", "Sense:to go"]}))
    assert list(table.rows) == [Row("chat", features=as_features(["POS:NOUN", "Sense:to go"]), source="python")]
    assert gather(LexiconOptions(lexicon=table)).rows == table.rows


def test_what_is_likely_a_mistake_is_said() -> None:
    """Features that differ only in case are two features."""
    words = {
        "la": ["Gender:Fem"], "une": ["Gender:Fem"], "elle": ["gender:fem"], "il": ["gender:fem", "pos:PRON"],
        "on": ["POS:PRON"],
    }  # fmt: skip
    table = gather(LexiconOptions(lexicon=words))
    assert table.notes == {
        "rows with features in different case, such as gender:fem and Gender:Fem: they are two features; spell them "
        "alike": 3,
    }


# The lexicon: union over analyses, order does not matter, and clear refusals
LEXICON_NAMES = st.sampled_from(["POS:NOUN", "POS:VERB", "Gender:Fem", "Shape:SmallNumber", "Number:Plur"])
LEXICON_VALUES = st.floats(-1e6, 1e6, width=32)
ENTRIES = st.lists(
    st.tuples(st.sampled_from(["la", "porte", "12"]), st.dictionaries(LEXICON_NAMES, LEXICON_VALUES, max_size=9)),
    max_size=9,
)


def lexicon_of(entries: list[tuple[str, dict[str, float]]]) -> Lexicon:
    lexicon = Lexicon()
    for word, features in entries:
        lexicon.add(word, features)
    return lexicon


def test_features_are_the_union_over_analyses() -> None:
    lexicon = Lexicon()
    lexicon.add("couvent", ["POS:NOUN", "Gender:Masc"])
    lexicon.add("couvent", ("POS:VERB",))
    assert contents(lexicon) == {"couvent": {"POS:NOUN": 1.0, "Gender:Masc": 1.0, "POS:VERB": 1.0}}


def test_the_larger_real_value_stays() -> None:
    lexicon = lexicon_of([("5", {"Shape:SmallNumber": 0.5}), ("5", {"Shape:SmallNumber": 0.95})])
    lexicon.add("5", {"Shape:SmallNumber": 0.1, "Weight:kg": -2})
    assert dict(lexicon.features("5")) == {"Shape:SmallNumber": 0.95, "Weight:kg": -2.0}


@given(ENTRIES, st.randoms())
def test_the_order_of_adding_does_not_matter(entries: list, random: Random) -> None:
    shuffled = list(entries)
    random.shuffle(shuffled)
    assert contents(lexicon_of(entries)) == contents(lexicon_of(shuffled))


@given(ENTRIES)
def test_adding_twice_changes_nothing(entries: list) -> None:
    assert contents(lexicon_of(entries + entries)) == contents(lexicon_of(entries))


@given(ENTRIES, ENTRIES)
def test_update_equals_adding_one_after_the_other(first: list, second: list) -> None:
    together = lexicon_of(first)
    together.update(lexicon_of(second))
    assert contents(together) == contents(lexicon_of(first + second))


def test_it_behaves_like_a_collection_of_words() -> None:
    lexicon = lexicon_of([("b", {}), ("a", {"POS:DET": 1.0}), ("b", {"POS:NOUN": 1.0})])
    assert list(lexicon) == ["b", "a"] and len(lexicon) == 2
    assert "a" in lexicon and "c" not in lexicon
    assert dict(lexicon.features("c")) == {} and "c" not in lexicon


def test_features_cannot_be_changed_from_outside() -> None:
    lexicon = lexicon_of([("a", {"POS:DET": 1.0})])
    for word in ("a", "unknown"):
        with pytest.raises(TypeError):
            lexicon.features(word)["POS:NOUN"] = 1.0  # type: ignore[index]


def test_update_adds_the_notes() -> None:
    first, second = Lexicon(), Lexicon()
    first.notes["repeated rows"] = 2
    second.notes["repeated rows"] = 3
    first.update(second)
    assert first.notes == {"repeated rows": 5}


@pytest.mark.parametrize(
    ("word", "features", "message"),
    [
        *(("un", {"Weight:kg": value}, f"feature 'Weight:kg' has the value {value}; expected a finite number")
          for value in (math.nan, math.inf, -math.inf)),
        *(("un", [name], f"{name!r} is no feature name; expected a group, a colon and a value, such as Gender:Fem")
          for name in ("Gender", "Gender:", ":Fem", "")),
        ("", ["POS:DET"], r"with the features \['POS:DET'\] has an empty word; remove it"),
    ],
)  # fmt: skip
def test_what_is_refused(word: str, features: Collection[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Lexicon().add(word, features)


def test_a_refused_entry_leaves_nothing_behind() -> None:
    lexicon = Lexicon()
    with pytest.raises(DataError):
        lexicon.add("un", {"POS:DET": 1.0, "nonsense": 1.0})
    assert "un" not in lexicon


def test_a_single_string_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match="features is the string 'POS:DET'; give a collection"):
        Lexicon().add("un", "POS:DET")


def test_feature_group() -> None:
    assert feature_group("Gender:Fem") == "Gender"
    assert feature_group("TOPFORM:12:30") == "TOPFORM"
    assert feature_group("NOTTOP") == "NOTTOP"
