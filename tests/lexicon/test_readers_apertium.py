"""Apertium: the stream format from stored lines, a stand-in for lt-proc, and lt-proc if installed."""

import shutil
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from lexicons import read_apertium, read_conllu, read_table
from read_counts import check_counts, counted

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.readers import apertium
from fairseq_llrnn.lexicon.readers.apertium import (
    SPLIT,
    UNKNOWN,
    analysis_features,
    find_analyser,
    lexical_units,
    tags_features,
)

StandIn = Callable[[str], Path]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("^porte/porte<n><f>$", [("porte", [("POS:NOUN", "Gender:Fem")])]),
        ("^porte/porte<n><sg>/porter<vblex><inf>$ ",
         [("porte", [("POS:NOUN", "Number:Sing"), ("POS:VERB", "VerbForm:Inf")])]),
        ("^blorp/*blorp$", [("blorp", [])]),
        ("^au/à<pr>+le<det><m>$", [("au", [("POS:ADP", "POS:DET", "Gender:Masc")])]),
        ("^c++/c++<n>$", [("c++", [("POS:NOUN",)])]),
        ("^cul-de-sac/cul<n><m># de sac$", [("cul-de-sac", [("POS:NOUN", "Gender:Masc")])]),
        (r"^a\/b/a\/b<n>/\<c\><adv>$", [("a/b", [("POS:NOUN",), ("POS:ADV",)])]),
        (r"^\^\$/\^\$<sent>$", [("^$", [("POS:PUNCT",)])]),
        (r"^x\\/x\\<num>$", [("x\\", [("POS:NUM",)])]),
        (r"^1/1<num>$\/^4/*4$", [("1", [("POS:NUM",)]), ("4", [])]),
        ("^zut/zut$", [("zut", [()])]),
        ("«", []),
        ("", []),
        ("^unfinished/x<n>", []),
    ],
)  # fmt: skip
def test_the_stream_format(text: str, units: list) -> None:
    found = [(surface, list(map(analysis_features, analyses))) for surface, analyses in lexical_units(text)]
    assert found == units


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ("np top mf sp", "POS:PROPN NameType:Geo Gender:Fem Gender:Masc Number:Plur Number:Sing"),
        ("vblex pii p3 pl", "POS:VERB Mood:Ind Tense:Imp VerbForm:Fin Person:3 Number:Plur"),
        ("vbser prs p1 sg", "POS:AUX POS:VERB Mood:Sub Tense:Pres VerbForm:Fin Person:1 Number:Sing"),
        ("vblex pp f pl", "POS:VERB Tense:Past VerbForm:Part Gender:Fem Number:Plur"),
        ("det def nt", "POS:DET Definite:Def Gender:Neut"),
        ("rel an", "POS:PRON PronType:Rel Apertium:an"),
        ("prn rel", "POS:PRON PronType:Rel"),
        ("blah n", "Apertium:blah Apertium:n"),
        ("", ""),
    ],
)
def test_tags_become_universal_names(tags: str, names: str) -> None:
    assert tags_features(tags.split()) == tuple(names.split())


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Replace lt-proc by a Python program, and return the path of an analyser's file."""

    def install(body: str) -> Path:
        program = tmp_path / "lt-proc"
        program.write_text(f"#!{sys.executable}\nimport sys\nassert sys.argv[1] == '-z'\n{body}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setattr(apertium.shutil, "which", lambda name: str(program))
        automaton = tmp_path / "xx.automorf.bin"
        automaton.touch()
        return automaton

    return install


# Knows porte, Lyon, ONU and <, and takes "1/4" for two words; escapes come back as they were sent.
KNOWING = r"""
known = {"porte": "porte<n><f>", "Lyon": "Lyon<np><top>", "ONU": "ONU<n><acr>", r"\<": r"\<<lpar>",
         "Porte": "Porte<np><cog>"}
for word in sys.stdin.buffer.read().decode().split("\0"):
    one = lambda w: f"^{w}/{known.get(w, '*' + w)}$"
    sys.stdout.write((one("1") + "\\/" + one("4") if word == r"1\/4" else one(word)) + "\0")
"""


def test_words_are_asked_and_answers_united(stand_in: StandIn) -> None:
    words = ["porte", "lyon", "<", "1/4", "blorp", "a\0b"]
    with counted() as counts:
        lexicon = read_apertium(iter(words), analyser=stand_in(KNOWING), lowercase=False)
    assert {word: list(lexicon.features(word)) for word in lexicon} == {
        "porte": ["Gender:Fem", "POS:NOUN"],
        "<": ["POS:PUNCT"],
    }
    check_counts(counts)
    assert [(count.read, count.left_out) for count in counts] == [(2, {UNKNOWN: 3, SPLIT: 1})]


def test_lower_cased_words_are_tried_with_capitals(stand_in: StandIn) -> None:
    lexicon = read_apertium(["porte", "lyon", "onu", "blorp"], analyser=stand_in(KNOWING), lowercase=True)
    assert {word: list(lexicon.features(word)) for word in lexicon} == {
        "porte": ["Gender:Fem", "POS:NOUN"],  # has an analysis as it stands: no name is sought
        "lyon": ["NameType:Geo", "POS:PROPN"],
        "onu": ["Abbr:Yes", "POS:NOUN"],
    }


@pytest.mark.parametrize("form", ["nfc", "nfd", None])
def test_lemmas_are_in_the_unicode_form_of_the_text(stand_in: StandIn, form: str | None) -> None:
    automaton = stand_in(KNOWING.replace('known = {', 'known = {"été": "été<n># là", "Mûr": "Mûr<np>", '))
    words = [unicodedata.normalize((form or "nfc").upper(), word) for word in ("été", "mûr")]
    table = read_table("apertium", automaton, form=form, words=words)
    assert [(row.form, row.lemma) for row in table.rows] == [
        (word, unicodedata.normalize((form or "nfc").upper(), lemma))
        for word, lemma in zip(words, ("été là", "mûr"), strict=True)
    ]


def test_many_words_go_in_batches(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    automaton = stand_in(KNOWING)
    monkeypatch.setattr(apertium, "WORDS_PER_RUN", 2)
    lexicon = read_apertium(["porte", "x", "y", "Lyon", "ONU"], analyser=automaton, lowercase=False)
    assert list(lexicon) == ["porte", "Lyon", "ONU"]


def test_a_missing_program_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apertium.shutil, "which", lambda name: None)
    message = r"the program lt-proc is not installed; it is in Debian's package lttoolbox \(apt install lttoolbox\)"
    with pytest.raises(DataError, match=message):
        read_apertium(["porte"], analyser="fra-cat", lowercase=False)


def test_an_unknown_mode_names_those_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apertium, "ANALYSERS_FOLDER", tmp_path)
    message = r"apertium fra-cat: expected the path .* installed modes \(none\), found .*apertium-fra-cat"
    with pytest.raises(DataError, match=message):
        find_analyser("fra-cat")
    (tmp_path / "apertium-eng-deu").mkdir()
    (tmp_path / "apertium-eng-deu" / "eng-deu.automorf.bin").touch()
    assert find_analyser("eng-deu") == tmp_path / "apertium-eng-deu" / "eng-deu.automorf.bin"
    with pytest.raises(DataError, match=r"installed modes \(eng-deu\)"):
        find_analyser("fra-cat")


def test_a_failing_program_is_quoted(stand_in: StandIn) -> None:
    automaton = stand_in("sys.exit('no automaton')")
    message = (
        "lt-proc -z .*xx.automorf.bin: failed with status 1, after 0 of 1 words, with the message: no automaton; is "
        "the file a compiled analyser?"
    )
    with pytest.raises(DataError, match=message):
        read_apertium(["porte"], analyser=automaton, lowercase=False)


def test_too_few_answers_are_noticed(stand_in: StandIn) -> None:
    automaton = stand_in(r"sys.stdout.write('^porte/porte<n>$\0')")
    with pytest.raises(DataError, match="failed with status 0, after 1 of 3 words, with the message: nothing on"):
        read_apertium(["porte", "a", "b"], analyser=automaton, lowercase=False)


def test_an_analyser_that_knows_nothing_is_refused(stand_in: StandIn) -> None:
    message = "xx.automorf.bin: expected words of the text, found none of 2; is it a compiled analyser of their"
    with pytest.raises(DataError, match=message):
        read_apertium(["blorp", "blarp"], analyser=stand_in(KNOWING), lowercase=False)


def test_no_words_need_no_answer(stand_in: StandIn) -> None:
    assert len(read_apertium([], analyser=stand_in(KNOWING), lowercase=True)) == 0


def french_is_installed() -> bool:
    if shutil.which("lt-proc") is None:
        return False
    try:
        find_analyser("fra-cat")
    except DataError:
        return False
    return True


needs_french = pytest.mark.skipif(
    not french_is_installed(),
    reason="lt-proc or its French analyser is absent: apt install lttoolbox apertium-fra-cat",
)


@needs_french
def test_the_real_analyser() -> None:
    words = [
        "couvent", "représentée", "du", "1/4", "lyon", "*", "^$[]{}\\/@<>", "[", "parce", "que", "", "l'eau",
    ]  # fmt: skip
    lexicon = read_apertium(words, analyser="fra-cat", lowercase=True)
    assert {"POS:NOUN", "POS:VERB", "Gender:Masc", "Person:3", "Mood:Sub"} <= set(lexicon.features("couvent"))
    assert dict.fromkeys(["POS:VERB", "Tense:Past", "VerbForm:Part", "Gender:Fem", "Number:Sing"], 1.0) == (
        lexicon.features("représentée")
    )
    assert {"POS:ADP", "POS:DET"} <= set(lexicon.features("du"))
    assert {"POS:PROPN", "NameType:Geo"} <= set(lexicon.features("lyon"))
    # Neighbours are not joined: "parce que" is an expression, "parce" alone is not.
    assert "parce" not in lexicon and "POS:SCONJ" in lexicon.features("que")
    assert "1/4" not in lexicon and "l'eau" not in lexicon


@needs_french
def test_the_real_program_with_a_wrong_file(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.automorf.bin"
    wrong.write_text("this is no automaton")
    with pytest.raises(DataError, match="is (the file|it) a compiled analyser"):
        read_apertium(["porte", "fenêtre"], analyser=wrong, lowercase=False)


@needs_french
@pytest.mark.real_data("ud-french-gsd-1.4")
def test_the_analyser_agrees_with_the_treebank(shared_data: Path) -> None:
    """Of the forms that are only feminine or only masculine in both, nearly all have the same gender."""
    treebank = read_conllu(shared_data / "ud-french-gsd-1.4" / "test.conllu.gz", lowercase=True)
    analyses = read_apertium(treebank, analyser="fra-cat", lowercase=True)
    genders = {"Gender:Fem", "Gender:Masc"}
    pairs = [(genders & set(treebank.features(word)), genders & set(analyses.features(word))) for word in analyses]
    pairs = [pair for pair in pairs if len(pair[0]) == len(pair[1]) == 1]
    assert len(pairs) > 500
    assert sum(first == second for first, second in pairs) > 0.95 * len(pairs)


# ---- lemmas ---------------------------------------------------------------------------------------------------------


def lemmas(stand_in: StandIn, words: list[str], answers: dict[str, str]) -> list[tuple[str, str, tuple[str, ...]]]:
    program = (
        f"known = {answers!r}\nfor word in sys.stdin.buffer.read().decode().split('\\0'):\n"
        "    sys.stdout.write(f'^{word}/{known.get(word, chr(42) + word)}$\\0')"
    )
    rows = read_table("apertium", stand_in(program), lowercase=False, words=words).rows
    return [(row.lemma, row.form, tuple(sorted(name for name, _ in row.features))) for row in rows if row.lemma]


def test_each_analysis_says_its_lemma(stand_in: StandIn) -> None:
    answers = {
        "couvent": "couvent<n><m><sg>/couver<vblex><inf>",
        "au": "à<pr>+le<det>",  # two words in one: no form of either
        "c++": "c++<n>",
        "cul-de-sac": "cul<n><m># de sac",
        r"\<": r"\<<lpar>",
        "zut": "zut",  # an analysis without tags
    }
    assert lemmas(stand_in, ["couvent", "au", "blorp", "c++", "cul-de-sac", "<", "zut"], answers) == [
        ("couvent", "couvent", ("Gender:Masc", "Number:Sing", "POS:NOUN")),
        ("couver", "couvent", ("POS:VERB", "VerbForm:Inf")),
        ("c++", "c++", ("POS:NOUN",)),
        ("cul de sac", "cul-de-sac", ("Gender:Masc", "POS:NOUN")),
        ("<", "<", ("POS:PUNCT",)),
    ]


@needs_french
def test_the_real_analyser_s_lemmas() -> None:
    found = read_table("apertium", "fra-cat", words=["grandes", "chats", "au", "lyon"]).rows
    assert {("grand", "grandes"), ("chat", "chats"), ("lyon", "lyon")} <= {(row.lemma, row.form) for row in found}
    assert "au" not in {row.form for row in found if row.lemma}
