"""Lemmas from files and packages, guesses by endings, and forms of lemmas that a text lacks."""

import io
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from lexicons import read_table

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages.simplemma_lemmas import Simplemma
from fairseq_llrnn.lexicon.lemmas import LemmaRules, Lemmas, more_forms
from fairseq_llrnn.lexicon.lexicon_table import Row, Table
from fairseq_llrnn.lexicon.merge_sources import gather, read_word_forms
from fairseq_llrnn.lexicon.options import LexiconOptions

PAIRS = [
    *((f"{stem}ách", f"{stem}a") for stem in ("kabin", "lamp", "rann", "maš")),
    *((f"{stem}ou", f"{stem}a") for stem in ("kabin", "lamp")),
    *((word, word) for word in ("lampa", "kabina", "malý")),
    ("nohou", "noha"), ("velkou", "velký"), ("malou", "malý"),
]  # fmt: skip


def test_a_lemma_is_guessed_by_the_longest_known_ending() -> None:
    rules = LemmaRules.learn(PAIRS)
    assert rules.guess("vodách") == "voda"  # a lemma that nobody listed
    assert rules.guess("rannou") == "ranna"  # as of rannách
    assert rules.guess("tmavách") == "tmava"
    assert rules.guess("lampě") is None  # no pair ends so
    assert rules.guess("12") is None and rules.guess("ách") is None and rules.guess("x2ách") is None


def test_a_known_lemma_goes_before_a_frequent_ending() -> None:
    pairs = [(f"{stem}ou", f"{stem}a") for stem in ("kabin", "lamp", "vod")]
    pairs += [(f"{stem}ou", f"{stem}ý") for stem in ("mal", "dlouh")]
    assert LemmaRules.learn(pairs).guess("novou") == "nova"
    assert LemmaRules.learn([*pairs, ("nového", "nový")]).guess("novou") == "nový"


def test_an_ending_that_one_pair_shows_is_no_rule() -> None:
    assert LemmaRules.learn([("psovi", "pes"), ("kočce", "kočka")]).guess("hadovi") is None


FILES = {
    "conllu": "1\tPsi\tpes\tNOUN\t_\t_\t0\troot\t_\t_\n2\t10 000\t10000\tNUM\t_\t_\t1\tnum\t_\t_\n"
    "3\tx\t_\tX\t_\t_\t1\tx\t_\t_\n\n",
    "lexicon": "Psi\tpes\tNOUN\t_\nx\t_\tX\t_\n",
    "unimorph": "pes\tPsi\tN;NOM;PL\npes\t-\tN;VOC;PL\npes\tPsi mí\tN;VOC;PL\n",
}


@pytest.mark.parametrize("kind", list(FILES))
def test_pairs_of_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    path.write_text(FILES[kind], encoding="utf-8")
    more = {"10_000": ("10000",)} if kind == "conllu" else {}
    for lowercase, form in ((True, "psi"), (False, "Psi")):
        assert Lemmas.of_table(read_table(kind, path, lowercase)).listed == {form: ("pes",), **more}


@pytest.fixture
def lexicon(tmp_path: Path) -> Path:
    path = tmp_path / "lexicon.tsv"
    rows = [*PAIRS, ("ženou", "žena"), ("ženou", "hnát")]
    path.write_text("".join(f"{form}\t{lemma}\tX\t_\n" for form, lemma in rows), encoding="utf-8")
    return path


def test_lemmas_of_words(lexicon: Path) -> None:
    lemmas = Lemmas.of_table(read_table("lexicon", lexicon))
    assert lemmas.of("ženou") == ("hnát", "žena")
    assert lemmas.of("vodách") == ("voda",) == lemmas.of("vodách")
    assert lemmas.of("12") == ()


def test_no_source_of_lemmas() -> None:
    with pytest.raises(OptionError, match=r"--option: expected a source of lemmas, found none; give --conllu"):
        Lemmas.of_table(Table()).check("--option", [])
    with pytest.raises(OptionError, match=r"found none: no form with a lemma in a.tsv is in the text; give --conllu"):
        Lemmas.of_table(Table()).check("--option", ["a.tsv"])


def test_packages_list_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(self: Simplemma, code: str) -> Iterator[tuple[str, str]]:
        assert code == "cs"
        yield "Psi", "Pes"

    monkeypatch.setattr(Simplemma, "listed", listed)
    monkeypatch.setattr(Simplemma, "missing", lambda self, code: [])
    monkeypatch.setattr(Simplemma, "read", lambda self, words, code, spelling: Lexicon())
    for keep_case, expected in ((False, {"psi": ("pes",)}), (True, {"Psi": ("Pes",)})):
        table = gather(LexiconOptions(language="cs", keep_case=keep_case), all_lemmas=True)
        assert Lemmas.of_table(table).listed == expected
        assert {row.source for row in table.rows} == {"simplemma:cs"}


def test_forms_that_a_text_lacks(lexicon: Path) -> None:
    lemmas = Lemmas.of_table(read_table("lexicon", lexicon))
    text = ("lampa", "žena", "malý", "vodou")
    found = more_forms(text, lemmas)
    assert found.listed == ("lampou", "lampách", "malou", "ženou") and found.guessed == ()
    frequencies = {"lampách": 0.1, "ženou": 0.2, "vodách": 0.3, "kabina": 0.4, "lampa": 0.5, "rybách": 0.1, "2": 0.1}
    found = more_forms(text, lemmas, frequencies)
    assert found.listed == ("ženou", "lampách") and found.guessed == ("vodách",) and found.unheard == 2
    assert found.all(None, frequencies) == ["vodách", "ženou", "lampách"]
    assert found.all(2, frequencies) == ["vodách", "ženou"]


def lemmas_of(*pairs: tuple[str, str]) -> Lemmas:
    return Lemmas.of_table(Table((Row(form, lemma, source="lexicon"), 0) for form, lemma in pairs))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("लड़का", "लड़के"),  # marks
        ("کتاب", "کتاب\u200cها"),  # a joiner
        (unicodedata.normalize("NFD", "dům"), unicodedata.normalize("NFD", "domů")),
        ("п'ять", "п'яти"),
        ("п\u2019ять", "п\u2019яти"),
        ("आते-जाते", "आती-जाती"),
        ("être", "peut-être"),
    ],
)
def test_words_of_letters_in_all_scripts(text: str, form: str) -> None:
    lemmas = lemmas_of((form, text), (text, text))
    assert more_forms([text], lemmas).listed == (form,)
    assert more_forms([text], lemmas, {form: 0.1}).listed == (form,)


@pytest.mark.parametrize(
    ("ending", "of_lemma", "stem"),
    [("े", "ा", "कपड़"), ("\u200cها", "", "کتاب"), ("u\u030a", "", "hrad"), ("ям", "я", "здоров'"), ("s", "", "vis-a-v")],
)
def test_words_of_letters_in_all_scripts_get_lemmas(ending: str, of_lemma: str, stem: str) -> None:
    lemmas = lemmas_of(*((f"{one}{ending}", f"{one}{of_lemma}") for one in ("बकर", "लड़क")))
    assert lemmas.of(f"{stem}{ending}") == (f"{stem}{of_lemma}",)


def test_forms_that_are_no_words_of_letters_are_counted() -> None:
    signs = ["2", "x2", "'", "l'", "'n", "chats.", "\u0301", "\u200c", "-", "x_y"]
    lemmas = lemmas_of(*((form, "chat") for form in ("chat", "chats", *signs)))
    for frequencies in (None, dict.fromkeys(["chats", *signs], 0.1)):
        more = more_forms(["chat"], lemmas, frequencies)
        assert more.listed == ("chats",) and more.signs == tuple(sorted(signs)) and more.unheard == 0
    rules = LemmaRules.learn(PAIRS)
    assert not any(rules.guess(f"{sign}ách") for sign in ("x2kab", "'kab", "kab.", "kab_"))
    assert rules.guess("ka'bách") == "ka'ba"


def test_simplemma_lists_forms() -> None:
    source = Simplemma()
    if source.missing("lv"):
        pytest.skip("simplemma is not installed")
    pairs: Mapping[str, str] = dict(source.listed("lv"))
    assert pairs["kaķiem"] == "kaķis"


# Forms of lemmas from tables, whoever wrote them, and what is no table
CASED, LOWER = ("Psi", "psa"), ("psi", "psa")  # texts
TABLE_FILES = {
    "lexicon": "Psi\tpes\tNOUN\tCase=Nom|Number=Plur\npsa\tpes\tNOUN\tCase=Gen|Number=Sing\npsa\tpes\tNOUN\tCase=Acc\n",
    "unimorph": "pes\tPsi\tN;NOM;PL\n\npes\tpsa\tN;GEN;SG\npes\t-\tN;VOC\n\tkos\tN\npes\tpsi mí\tN;PL\n",
    "conllu": (
        "1\tPsi\tpes\tNOUN\t_\tCase=Nom|Number=Plur\t2\tnsubj\t_\t_\n2\tpsa\tpes\tNOUN\t_\tCase=Gen\t0\troot\t_\t_\n\n"
    ),
}


def written(folder: Path, kind: str) -> str:
    """Return the table of a reader's words."""
    (folder / "file").write_text(TABLE_FILES[kind], encoding="utf-8")
    read_table(kind, folder / "file", lowercase=False).write(text := io.StringIO())
    (path := folder / f"{kind}.tsv").write_text(text.getvalue(), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("kind", TABLE_FILES)
def test_a_table_says_the_forms_of_a_lemma(kind: str, tmp_path: Path) -> None:
    found = read_word_forms([written(tmp_path, kind)], CASED)
    assert {*found.of("pes")} - {"psi mí"} == {"Psi", "psa"} and not found.of("psa") and list(found) == ["pes"]
    assert {"POS:NOUN", "Case:Nom", "Number:Plur"} == set(found.of("pes")["Psi"])
    assert "Case:Gen" in found.of("pes")["psa"]
    assert ("psi mí" in found.of("pes")) == (kind == "unimorph")


@pytest.mark.parametrize("kind", TABLE_FILES)
def test_in_lower_cased_text_forms_are_lower_cased(kind: str, tmp_path: Path) -> None:
    assert {"psi", "psa"} <= set(read_word_forms([written(tmp_path, kind)], LOWER).of("pes"))


def test_several_tables_are_united(tmp_path: Path) -> None:
    found = read_word_forms([written(tmp_path, kind) for kind in TABLE_FILES], CASED)
    assert len(found) == 1 and {"Case:Gen", "Case:Acc", "Number:Sing"} < set(found.of("pes")["psa"])


def test_what_endings_say_is_no_form(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(
        "form\tlemma\tUPOS\tFEATS\tcount\tsource\tguessed\tvalues\npsa\tpes\t_\t_\t0\tendings\tyes\t_\n"
        "psi\tpes\t_\t_\t0\tsimplemma:cs\tyes\t_\n", encoding="utf-8",
    )  # fmt: skip
    assert list(read_word_forms([str(path)], LOWER).of("pes")) == ["psi"]


def test_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: cannot be read: No such file or directory"):
        read_word_forms([str(tmp_path / "nowhere")], ("a",))
