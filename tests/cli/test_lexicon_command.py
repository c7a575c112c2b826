"""`llrnn lexicon`: a prior from the table is the prior from its sources, and what a person changes reaches it."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small_corpus import Llrnn

from fairseq_llrnn.lexicon.languages import language_source
from fairseq_llrnn.lexicon.languages.simplemma_lemmas import Simplemma
from fairseq_llrnn.lexicon.lemmas import Lemmas
from fairseq_llrnn.lexicon.merge_sources import gather
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.guesses import GuessesPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

TEXT = "les chats dorment .\nle chat dort .\nla table verte\nles tables vertes\nchatte chatte tables dorment\n"
WORDS = ("le", "la", "les", "chat", "chats", "chatte", "table", "tables", "dort", "dorment", "verte", "vertes", ".")
UNSEEN = ("portes", "porte", "dormes")
FILES = {
    "conllu": "".join(
        f"{i}\t{form.title()}\t{lemma}\t{upos}\t_\t{feats}\t_\t_\t_\t_\n"
        for i, (form, lemma, upos, feats) in enumerate(
            [
                ("les", "le", "DET", "Number=Plur"), ("chats", "chat", "NOUN", "Gender=Masc|Number=Plur"),
                ("tables", "table", "NOUN", "Gender=Fem|Number=Plur"), ("10 000", "10000", "NUM", "_"),
                ("chats", "chater", "VERB", "_"), ("dorment", "dormir", "VERB", "Number=Plur|VerbForm=Fin"),
            ], 1,
        )
    ) + "\n",
    "lexicon": "le\tle\tDET\tGender=Masc\nchats\tchat\tNOUN\tNumber=Plur\ntables\ttable\tNOUN\tNumber=Plur\n"
    "dort\tdormir\tVERB\t_\nà peine\tà peine\tADV\t_\n",
    "unimorph": "chat\tchats\tN;PL\ntable\ttables\tN;PL;LGSPEC1\ndormir\tdort\tV;IND;PRS;3;SG\ntable\ttable\tN;SG\n",
    "values": "chat\tAge:Years\t2.5\ntable\tAge:Years\t-3e2\nchat\tOdd:a,b|c\t1\n",
    "morphemes": "chats\tchat s\ntables\ttable s\nvertes\tvert e s\n",
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(TEXT, encoding="utf-8")
    counts = [TEXT.split().count(word) for word in (*WORDS, *UNSEEN)]
    own = zip((*WORDS, *UNSEEN), counts, strict=True)
    Path("dict.txt").write_text("".join(f"{word} {count}\n" for word, count in own), encoding="utf-8")
    for kind, text in FILES.items():
        Path(kind).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def prior(llrnn: Llrnn, place: Path) -> Callable[..., Prior]:
    def made(*options: object) -> Prior:
        text = ("--dict", "dict.txt", "--count-text", "train.txt")
        done = llrnn("prior", *text, "--top-words", 2, "--out", "p", *options)
        assert done.code == 0, done.err
        return Prior.load("p")

    return made


def same(one: Prior, other: Prior) -> bool:
    """In all that a model depends on, to the bit."""
    assert one.output.features.names == other.output.features.names
    assert (one.output.class_of == other.output.class_of).all()
    assert one.output.features.values.tobytes() == other.output.features.values.tobytes()
    return one.fingerprint == other.fingerprint


def row(prior: Prior, word: str) -> dict[str, float]:
    return prior.output.features.row(int(prior.output.class_of[prior.index(word)]))


@pytest.mark.parametrize("kinds", [[kind] for kind in FILES] + [list(FILES)], ids="-".join)
@pytest.mark.parametrize("guess", ["on", "off", "auto"])
def test_a_prior_from_the_table_is_that_of_its_sources(
    llrnn: Llrnn, prior: Callable[..., Prior], kinds: list[str], guess: str
) -> None:
    sources = [one for kind in kinds for one in (f"--{kind}", kind)]
    floor = ["--morpheme-floor", 1] * ("morphemes" in kinds)
    own = {"morpheme_floor": 1} if "morphemes" in kinds else {}
    words = LexiconOptions(**{kind: kind for kind in kinds}, **own, guess=guess)  # type: ignore[arg-type]
    direct = build_prior("dict.txt", Recipe(text="train.txt", top_words=2, words=words))
    ways: list[list[object]] = [["--dict", "dict.txt", "--count-text", "train.txt", "--guess", guess]]
    if "morphemes" not in kinds:  # of which words share them depends on the words
        ways.append([])
    table = "words.tsv.gz" if guess == "on" else "words.tsv"
    for way in ways:
        assert llrnn("lexicon", *sources, *floor, *way, "--out", table).code == 0
        assert (Path(table).read_bytes()[:2] == b"\x1f\x8b") == table.endswith(".gz")
        made = prior("--lexicon", table, "--set", f"words.guess={guess}")
        assert same(direct, made)
        parts = [one.find(GuessesPart) for one in (direct, made)]
        assert [part if part is None else part.words.tolist() for part in parts[:1]] == [
            part if part is None else part.words.tolist() for part in parts[1:]
        ]


def edited(pattern: str, new: str) -> None:
    """Change the one place of the table that is meant."""
    text, many = re.subn(pattern, new, Path("words.tsv").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert many == 1
    Path("words.tsv").write_text(text, encoding="utf-8")


def test_what_a_person_changes_reaches_the_prior(llrnn: Llrnn, prior: Callable[..., Prior]) -> None:
    assert llrnn("lexicon", "--conllu", "conllu", "--out", "words.tsv").code == 0
    options = ("--lexicon", "words.tsv", "--set", "words.guess=off", "--top-words", 0)
    before = row(prior(*options), "chats")
    assert before.keys() == {"NOTTOP", "POS:NOUN", "POS:VERB", "Gender:Masc", "Number:Plur"}
    edited("^(chats\tchat\tNOUN\t)Gender=Masc", r"\1Gender=Fem")
    assert row(prior(*options), "chats").keys() == before.keys() - {"Gender:Masc"} | {"Gender:Fem"}
    edited("^chats\tchater\tVERB.*\n", "")
    assert row(prior(*options), "chats").keys() == {"NOTTOP", "POS:NOUN", "Gender:Fem", "Number:Plur"}
    edited("^(tables\ttable\tNOUN\t)[^\t]*", r"\1Number=Plur@0.5")
    assert row(prior(*options), "tables") == {"NOTTOP": 1.0, "POS:NOUN": 1.0, "Number:Plur": 0.5}
    edited("^(tables\t)table", r"\1tabler")
    assert Lemmas.of_table(gather(LexiconOptions(lexicon="words.tsv"))).of("tables") == ("tabler",)


def test_it_is_the_same_file_whatever_the_order(llrnn: Llrnn, place: Path) -> None:
    order = [["--conllu", "conllu", "--unimorph", "unimorph"], ["--unimorph", "unimorph", "--conllu", "conllu"]]
    texts = [llrnn("lexicon", *options, "--out", "-").out for options in order]
    assert texts[0] == texts[1]
    lines = texts[0].splitlines()
    assert lines[0].split("\t") == ["form", "lemma", "UPOS", "FEATS", "count", "source", "guessed", "values"]
    assert "chats\tchat\tNOUN\tGender=Masc|Number=Plur\t1\tconllu\tno\t_" in lines
    cells = [line.split("\t") for line in lines[1:]]
    assert cells == sorted(cells) and {len(one) for one in cells} == {8}


def test_counts_of_analyses_and_of_words(llrnn: Llrnn, place: Path) -> None:
    """Those of a treebank stay, also if they are read from a table. Others are those of the text."""
    Path("twice").write_text(FILES["conllu"] * 2, encoding="utf-8")
    Path("more.txt").write_text("chats " * 7, encoding="utf-8")
    counted = ("--count-text", "more.txt", "--out")
    for number, sources in enumerate([["--conllu", "twice"], ["--lexicon", "0.tsv"]]):
        assert llrnn("lexicon", *sources, "--unimorph", "unimorph", *counted, f"{number}.tsv").code == 0
        rows = [line.split("\t") for line in Path(f"{number}.tsv").read_text("utf-8").splitlines()]
        found = {(cells[2], cells[5]): cells[4] for cells in rows if cells[0] == "chats"}
        assert found == {("NOUN", "conllu"): "2", ("VERB", "conllu"): "2", ("NOUN", "unimorph"): "7"}


def test_words_of_a_text_and_other_forms_of_their_lemmas(
    llrnn: Llrnn, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"table table chats\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    done = llrnn("lexicon", "--unimorph", "unimorph", "--count-text", "-", "--out", "words.tsv")
    found = {tuple(line.split("\t")[:5:4]) for line in Path("words.tsv").read_text().splitlines()[1:]}
    assert found == {("table", "2"), ("tables", "0"), ("chats", "1")}
    assert re.search(r"^words of the text without a row +0$", done.out, re.MULTILINE)
    assert done.err.splitlines()[0].endswith("kept as they are (UniMorph:LGSPEC1)")
    assert "table written to words.tsv" in done.out


def test_a_dictionary_beside_a_text(llrnn: Llrnn, place: Path) -> None:
    """hunspell is asked for words of the text that the dictionary lacks, too."""
    Path("fr.aff").write_text("SET UTF-8\nSFX S Y 1\nSFX S 0 s .\n", encoding="utf-8")
    Path("fr.dic").write_text("3\nchat/S\ngare/S\nnez\n", encoding="utf-8")
    Path("more.txt").write_text("les gares\n", encoding="utf-8")
    words = ("--dict", "dict.txt", "--count-text", "more.txt", "--out", "words.tsv")
    assert llrnn("lexicon", "--hunspell", "fr.dic", *words).code == 0
    lines = Path("words.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert {line.split("\t")[0] for line in lines if "hunspell" in line} >= {"chats", "gares"}
    opened = ("--open-vocabulary", "characters", "--set", "words.guess=off", "words.lexicon=words.tsv")
    texts = ("--count-text", "train.txt", "more.txt")
    assert llrnn("prior", "--dict", "dict.txt", *texts, *opened, "--out", "p").code == 0


def test_a_package_s_lemmas_are_listed_or_its_guesses(
    llrnn: Llrnn, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: Simplemma, words: list[str], code: str, spelling: language_source.Spelling) -> object:
        return ((word, [f"Lemma:{word[:-1]}"]) for word in words if word.endswith("s"))

    for source in language_source.sources_of("fr"):
        monkeypatch.setattr(type(source), "missing", lambda self, code: [] if self.name == "simplemma" else ["x"])
    monkeypatch.setattr(Simplemma, "read", read)
    monkeypatch.setattr(Simplemma, "listed", lambda self, code: iter([("Tables", "Table"), ("Ville", "Ville")]))
    given = ("--language", "fr", "--dict", "dict.txt", "--lemma-floor", 1)
    assert llrnn("lexicon", *given, "--out", "words.tsv").code == 0
    lines = Path("words.tsv").read_text().splitlines()
    of_chats, of_tables = (next(line for line in lines if line.startswith(word)) for word in ("chats", "tables"))
    assert of_chats.split("\t")[1:2] + of_chats.split("\t")[5:] == ["chat", "simplemma:fr", "yes", "Lemma=chat"]
    assert of_tables.split("\t")[1:2] + of_tables.split("\t")[5:] == ["table", "simplemma:fr", "no", "Lemma=table"]
    assert not any(line.startswith("ville") for line in lines)
    assert "chats\tchate" not in lines and Lemmas.of_table(gather(LexiconOptions(lexicon="words.tsv"))).listed == {
        "tables": ("table",)
    }


def test_what_it_refuses(llrnn: Llrnn, place: Path) -> None:
    assert llrnn("lexicon", "--out", "words.tsv").error == (
        "llrnn lexicon: expected a source of words, found none; add --conllu, --lexicon, --unimorph, "
        "--hunspell, --apertium, --values, --morphemes or --language"
    )
    given = ("lexicon", "--conllu", "conllu")
    assert llrnn(*given, "--out", "conllu").error == (
        "--out conllu: expected another file, found one that is read, which would be lost"
    )
    assert llrnn(*given, "--guess", "on", "--out", "words.tsv").error == (
        "--guess on needs --dict or --count-text; add one of them, or remove --guess"
    )
    assert llrnn(*given, "--lower", "tr", "--keep-case", "--out", "words.tsv").error == (
        "--lower tr excludes --keep-case; leave one of them out"
    )
    assert "no such folder" in llrnn(*given, "--out", "none/words.tsv").error
    assert not Path("words.tsv").exists()


def test_apertium_needs_a_program_an_analyser_and_words(
    llrnn: Llrnn, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is installed on this machine."""
    given = ("lexicon", "--conllu", "conllu", "--out", "words.tsv", "--apertium")
    monkeypatch.setattr("fairseq_llrnn.lexicon.readers.apertium.ANALYSERS_FOLDER", place / "apertium")
    monkeypatch.setenv("PATH", str(place))
    assert llrnn(*given, "fra-cat").error == (
        "the program lt-proc is not installed; it is in Debian's package lttoolbox (apt install lttoolbox)"
    )
    Path("lt-proc").write_text("#!/bin/sh\n")
    Path("lt-proc").chmod(0o755)
    assert llrnn(*given, "fra-cat").error == (
        "--apertium fra-cat: expected the path of an *.automorf.bin, or one of the installed modes (none), found "
        "neither; Debian's package apertium-fra-cat contains fra-cat, French"
    )
    analyser = place / "apertium" / "apertium-fra-cat" / "fra-cat.automorf.bin"
    analyser.parent.mkdir(parents=True)
    analyser.touch()
    assert llrnn(*given, "fra-cat").error == "apertium fra-cat needs words to look up; give --dict or --count-text"
    assert not Path("words.tsv").exists()
