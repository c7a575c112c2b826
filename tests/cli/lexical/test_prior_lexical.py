"""`llrnn prior --lexical-translation` and `llrnn show --source`, on what fairseq-preprocess really writes."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from shell import Shell
from small_corpus import Done, Llrnn

from fairseq_llrnn.prior.parts import LexicalPart
from fairseq_llrnn.prior.prior import Prior

ENGLISH = ["the house", "the cat", "the window", "12 cats", "a window"]
FRENCH = ["la maison", "le chat", "la fenêtre", "12 chats", "une fenêtre"]


def preprocess(shell: Shell, data: Path, english: list[str], french: list[str], *options: object) -> None:
    """Write the texts beside `data`, and `data`."""
    for language, lines in (("en", english), ("fr", french)):
        (data.parent / f"train.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shell.run(
        "fairseq-preprocess", "-s", "en", "-t", "fr", "--trainpref", data.parent / "train", "--destdir", data, *options
    )


@pytest.fixture(scope="session")
def made(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data-bin: en-fr, and joined: the same with one dictionary."""
    place = tmp_path_factory.mktemp("bitext")
    preprocess(shell, place / "data-bin", ENGLISH * 5, FRENCH * 5)
    preprocess(shell, place / "joined", ENGLISH * 5, FRENCH * 5, "--joined-dictionary")
    return place


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(made / "data-bin", tmp_path / "data-bin"))


Run = Callable[..., Done]


@pytest.fixture
def prior(data: Path, llrnn: Llrnn) -> Run:
    """Run `llrnn prior` with the bitext and IBM Model 1; later options win."""

    def run(*options: object) -> Done:
        return llrnn(
            "prior", "--dict", data / "dict.fr.txt", "--top-words", 3, "--lexical-translation", data, "--aligner",
            "ibm1", "--out", data / "prior", *options,
        )  # fmt: skip

    return run


def translations(prior: Prior, word: str) -> list[str]:
    row = prior.find(LexicalPart).table.row(prior.source_symbols.index(word))
    return [prior.symbols[x] for x, _ in row]


# ---- what it makes --------------------------------------------------------------------------------------------------


def test_it_learns_the_translations_of_the_source_words(built: Callable[..., Prior], data: Path) -> None:
    prior = built()
    for english, french in {"house": "maison", "cat": "chat", "window": "fenêtre", "a": "une"}.items():
        assert translations(prior, english)[0] == french
    for special in ("<s>", "<pad>", "</s>", "<unk>"):
        assert translations(prior, special) == []
    lexical = prior.find(LexicalPart)
    assert (lexical.weight, lexical.learned, lexical.aligner) == (0.5, False, "ibm1")
    words = [line.split()[0] for line in (data / "dict.en.txt").read_text(encoding="utf-8").splitlines()]
    assert list(prior.source_symbols[4:]) == words
    described = json.loads((data / "prior" / "prior.json").read_text(encoding="utf-8"))
    assert described["settings"]["lexical_top"] == 10
    assert [source.split()[:2] for source in described["settings"]["sources"]] == [
        ["--lexical-translation", "train.en-fr.en.bin"], ["--lexical-translation", "train.en-fr.fr.bin"]
    ]  # fmt: skip


def test_it_says_what_was_made(prior: Run) -> None:
    done = prior()
    figures = dict(line.rsplit(None, 1) for line in done.out.splitlines()[:-1])
    assert figures["source words"] == "7"
    assert int(figures["translations"]) > 7
    assert done.err == ""


def test_options(built: Callable[..., Prior]) -> None:
    one = built("--lexical-weight", 0.25, "--lexical-top", 1)
    part = one.find(LexicalPart)
    assert (part.weight, part.learned) == (0.25, False)
    assert np.diff(part.table.offsets).max() == 1
    learned = built("--lexical-weight", "learned")
    part = learned.find(LexicalPart)
    assert (part.weight, part.learned) == (0.5, True)
    assert len(list(learned.background().parameters())) == 1


def test_same_input_same_bytes(prior: Run, data: Path) -> None:
    assert prior().code == 0
    first = {f.name: f.read_bytes() for f in (data / "prior").iterdir()}
    assert prior().code == 0
    assert {f.name: f.read_bytes() for f in (data / "prior").iterdir()} == first
    assert sorted(first) == ["arrays.npz", "dictionary.txt", "prior.json", "source.txt"]


def test_the_dictionary_says_which_side_is_the_target(built: Callable[..., Prior], data: Path) -> None:
    """One data-bin serves both directions, as fairseq itself has it."""
    assert translations(built("--dict", data / "dict.en.txt"), "maison")[0] == "house"


@pytest.mark.parametrize(("target", "word", "translation"), [("fr", "house", "maison"), ("en", "maison", "house")])
def test_a_joined_dictionary(made: Path, built: Callable[..., Prior], target: str, word: str, translation: str) -> None:
    joined = made / "joined"
    prior = built("--dict", joined / f"dict.{target}.txt", "--lexical-translation", joined)
    assert translations(prior, word)[0] == translation


def test_a_joined_dictionary_by_another_name(
    made: Path, built: Callable[..., Prior], tmp_path: Path
) -> None:
    shutil.copy(made / "joined" / "dict.en.txt", tmp_path / "dict.txt")
    prior = built("--dict", tmp_path / "dict.txt", "--lexical-translation", made / "joined")
    assert translations(prior, "house")[0] == "maison"


def test_pairs_that_cannot_be_aligned_are_counted(shell: Shell, tmp_path: Path, llrnn: Llrnn) -> None:
    data = tmp_path / "data"
    preprocess(shell, data, ["house", ""], ["maison", ""])
    done = llrnn(
        "prior", "--dict", data / "dict.fr.txt", "--lexical-translation", data, "--aligner", "ibm1", "--top-words", 1,
        "--out", data / "prior",
    )  # fmt: skip
    assert done.code == 0
    assert done.err == "note: 1 sentence pairs not aligned: a side without words, or of more than 1,023\n"


@pytest.mark.skipif(importlib.util.find_spec("eflomal") is None, reason="eflomal is not installed")
@pytest.mark.parametrize("aligner", ["eflomal", "auto"])
def test_eflomal(built: Callable[..., Prior], aligner: str) -> None:
    lexical = built("--aligner", aligner).find(LexicalPart)
    assert lexical is not None and lexical.aligner == "eflomal"


def test_auto_without_eflomal(built: Callable[..., Prior], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    lexical = built("--aligner", "auto").find(LexicalPart)
    assert lexical is not None and lexical.aligner == "ibm1"


# ---- lemmas ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def lemmas(data: Path) -> list[object]:
    """Options of a prior whose dictionary has the form `maisons`, which the text lacks."""
    with (data / "dict.fr.txt").open("a", encoding="utf-8") as file:
        file.write("maisons 0\n")
    lexicon = data / "lexicon.tsv"
    lemma_of = {"maison": "maison", "maisons": "maison", "chat": "chat", "chats": "chat", "la": "le", "le": "le"}
    lexicon.write_text("".join(f"{form}\t{lemma}\tX\t_\n" for form, lemma in lemma_of.items()), encoding="utf-8")
    return ["--lexicon", lexicon, "--lexical-units", "lemma"]


def test_lemmas_reach_forms_that_the_bitext_lacks(
    built: Callable[..., Prior], data: Path, lemmas: list[object], llrnn: Llrnn
) -> None:
    prior = built(*lemmas)
    part = prior.find(LexicalPart)
    assert part.form_power == 0.5
    assert translations(prior, "house")[0] == "maison"
    row = {prior.symbols[x]: p for x, p in part.word_table.row(prior.source_symbols.index("house"))}
    assert row["maisons"] == pytest.approx(row["maison"] * (0.5 / 5.5) ** 0.5, rel=1e-4)
    assert "maisons" in llrnn("show", data / "prior", "--source", "house").out
    shown = llrnn("show", data / "prior").out
    assert "counts of forms to the power 0.5" in shown and "forms of lemmas" in shown
    even = built(*lemmas, "--lexical-form-power", 0)
    assert even.find(LexicalPart).form_power == 0.0
    assert prior.fingerprint != even.fingerprint


def test_lemmas_need_a_source(prior: Run, lemmas: list[object]) -> None:
    assert prior("--lexical-units", "lemma").error == (
        "--lexical-units lemma: expected a source of lemmas, found none; give --conllu, --lexicon, --unimorph or "
        "--hunspell, or --language with a package that lists lemmas"
    )
    assert prior("--lexical-form-power", 0.5).error == (
        "--lexical-form-power: it needs --lexical-units lemma; add that, or leave it out"
    )
    assert prior("--hunspell", "fr.dic").error == (
        "--hunspell: it needs --lexical-units lemma; add that, or leave it out"
    )
    assert prior(*lemmas, "--lexical-form-power", 1.5).error == (
        "--lexical-form-power 1.5: expected a number from 0 (all forms of a lemma alike) to 1 (as frequent as they are)"
    )


def test_pieces_have_no_lemmas(prior: Run, lemmas: list[object]) -> None:
    assert prior(*lemmas, "--pieces", "bpe").error == (
        "--lexical-units lemma: lemmas are of whole words, found --pieces bpe beside it; preprocess words, or leave "
        "one of them out"
    )


# ---- lemmas of the source -----------------------------------------------------------------------------------------


@pytest.fixture
def source_lemmas(data: Path) -> list[object]:
    """Options of a prior whose source dictionary has `houses`, which the text lacks."""
    with (data / "dict.en.txt").open("a", encoding="utf-8") as file:
        file.write("houses 0\n")
    lexicon = data / "english.tsv"
    lexicon.write_text("house\thouse\tX\t_\nhouses\thouse\tX\t_\ncat\tcat\tX\t_\n", encoding="utf-8")
    return ["--lexical-source-lemmas", f"lexicon:{lexicon}"]


@pytest.mark.parametrize("units", ["word", "lemma"])
def test_source_words_that_the_bitext_lacks_are_known_by_their_lemma(
    built: Callable[..., Prior], data: Path, lemmas: list[object], source_lemmas: list[object], llrnn: Llrnn, units: str
) -> None:
    own = lemmas if units == "lemma" else []
    plain = built(*own)
    assert not plain.find(LexicalPart).unit_table.row(plain.source_symbols.index("houses"))
    prior = built(*own, *source_lemmas)
    part = prior.find(LexicalPart)
    rows = [dict(part.word_table.row(prior.source_symbols.index(word))) for word in ("house", "houses")]
    assert rows[0].keys() == rows[1].keys()
    assert prior.symbols[max(rows[1], key=rows[1].__getitem__)] == "maison"
    assert "maison" in llrnn("show", data / "prior", "--source", "houses").out
    shown = llrnn("show", data / "prior").out
    assert "rare source words as their lemmas, of 5 links more" in shown and "translations of source lemmas" in shown
    assert prior.fingerprint != plain.fingerprint
    assert Prior.load(data / "prior").fingerprint == prior.fingerprint
    assert any(row.startswith("--lexical-source-lemmas english.tsv ") for row in prior.settings["sources"])


def test_a_source_with_capitals(shell: Shell, tmp_path: Path, llrnn: Llrnn) -> None:
    """Its lemmas have capitals, whatever the target has."""
    preprocess(shell, tmp_path / "data", ["Haus", "Häuser da"] * 3, ["maison", "maison là"] * 3)
    (tmp_path / "german.tsv").write_text("Haus\tHaus\tX\t_\nHäuser\tHaus\tX\t_\n", encoding="utf-8")
    done = llrnn(
        "prior", "--dict", tmp_path / "data" / "dict.fr.txt", "--lexical-translation", tmp_path / "data", "--aligner",
        "ibm1", "--lexical-source-lemmas", f"lexicon:{tmp_path / 'german.tsv'}", "--out", tmp_path / "prior",
    )  # fmt: skip
    assert done.code == 0
    prior = Prior.load(tmp_path / "prior")
    heads = prior.find(LexicalPart).source_lemmas.head_of
    first, second = (prior.source_symbols.index(word) for word in ("Haus", "Häuser"))
    assert heads[first] == heads[second]


def test_lemmas_of_hunspell(built: Callable[..., Prior], data: Path, lemmas: list[object]) -> None:
    (data / "x.aff").write_text("SFX S Y 1\nSFX S 0 s .\n")
    (data / "x.dic").write_text("2\nmaison/S\nchat/S\n")
    prior = built("--lexical-units", "lemma", "--hunspell", data / "x.dic")
    row = {prior.symbols[x] for x, _ in prior.find(LexicalPart).word_table.row(prior.source_symbols.index("house"))}
    assert {"maison", "maisons"} <= row  # the text has no maisons
    assert any(row.startswith("--hunspell x.dic ") for row in prior.settings["sources"])


def test_where_source_lemmas_come_from(prior: Run, source_lemmas: list[object]) -> None:
    assert prior("--lexical-source-lemmas", "en").error == (
        "--lexical-source-lemmas en: expected lexicon:FILE, unimorph:FILE, treebank:FILE, hunspell:FILE.dic or "
        "lemmas:CODE (e.g. lemmas:en), found something else; say what the file is"
    )
    assert prior("--lexical-source-lemmas", "lemmas:en", "lemmas:de").error == (
        "--lexical-source-lemmas: expected one language, found en and de; leave one of them out"
    )
    assert prior("--lexical-source-lemmas", "lemmas:zh").error == (
        "--lexical-source-lemmas lemmas:zh: expected a source of lemmas, found none; give lexicon:FILE, unimorph:FILE, "
        "treebank:FILE or hunspell:FILE.dic, or a package's lemmas:CODE"
    )
    assert prior(*source_lemmas, "--pieces", "bpe").error == (
        "--lexical-source-lemmas: lemmas are of whole words, found --pieces bpe beside it; preprocess words, or leave "
        "one of them out"
    )


# ---- what it refuses ------------------------------------------------------------------------------------------------


def test_an_aligner_that_is_not_installed(prior: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    assert prior("--aligner", "eflomal").error == (
        "--aligner eflomal: the Python module eflomal is not installed; pip install 'fairseq-llrnn[align]' brings it "
        "(and needs a C compiler), or say --aligner ibm1"
    )
    assert not (data / "prior").exists()


@pytest.mark.parametrize("weight", ["1", "1.5", "nan", "inf", "-0.1"])
def test_a_weight_out_of_range(prior: Run, data: Path, weight: str) -> None:
    assert prior(f"--lexical-weight={weight}").error == (
        f"--lexical-weight {float(weight)}: expected a number from 0 to below 1 (1 would forbid every word but the "
        "translations), or `learned`; 0.5 is a good start"
    )
    assert not (data / "prior").exists()


def test_a_weight_that_is_no_number(prior: Run) -> None:
    done = prior("--lexical-weight", "much")
    assert done.code == 2
    assert "argument --lexical-weight: expected a number or `learned`, found 'much'" in done.err


def test_no_translations_to_keep(prior: Run) -> None:
    assert prior("--lexical-top", 0).error == "--lexical-top 0: expected a number of translations of at least 1"


@pytest.mark.parametrize(
    ("option", "value"), [("--lexical-weight", "learned"), ("--lexical-top", "3"), ("--aligner", "ibm1")]
)
def test_options_without_a_bitext(data: Path, llrnn: Llrnn, option: str, value: str) -> None:
    done = llrnn("prior", "--dict", data / "dict.fr.txt", "--top-words", 3, "--out", data / "prior", option, value)
    assert done.error == f"{option}: it needs --lexical-translation; add that, or leave it out"


def test_beside_softmax(data: Path, llrnn: Llrnn) -> None:
    done = llrnn(
        "prior", "--dict", data / "dict.fr.txt", "--softmax", "--lexical-translation", data, "--out", data / "prior"
    )
    assert done.error == (
        "--softmax: a softmax takes no other option, found --lexical-translation beside it; leave one of them out"
    )


def test_no_such_folder(prior: Run, data: Path) -> None:
    assert prior("--lexical-translation", data / "nowhere").error == (
        f"--lexical-translation {data / 'nowhere'}: expected the folder that fairseq-preprocess wrote, found no such "
        "folder; give its --destdir"
    )
    assert "found a file; give its --destdir" in prior("--lexical-translation", data / "dict.fr.txt").error


def test_no_bitext_in_it(prior: Run, data: Path) -> None:
    (data / "train.en-fr.en.idx").unlink()
    (data / "valid.en-fr.en.idx").write_bytes(b"")
    (data / "train.bin").write_bytes(b"")
    assert prior().error == (
        f"--lexical-translation {data}: expected a bitext (train.SRC-TGT.SRC.bin, train.SRC-TGT.TGT.bin and their "
        ".idx), found none; run fairseq-preprocess with --source-lang, --target-lang and --trainpref"
    )


def test_several_language_pairs(prior: Run, data: Path) -> None:
    for end in ("bin", "idx"):
        for language, other in (("en", "de"), ("fr", "fr")):
            shutil.copy(data / f"train.en-fr.{language}.{end}", data / f"train.de-fr.{other}.{end}")
    assert prior().error == (
        f"--lexical-translation {data}: expected one language pair, found de-fr, en-fr; give a folder with one of them"
    )


def test_a_dictionary_that_is_none_of_them(prior: Run, data: Path) -> None:
    other = data / "dict.other.txt"
    other.write_text("le 3\nla 2\nles 1\n", encoding="utf-8")
    assert prior("--dict", other).error == (
        f"--lexical-translation {data}: expected its dict.en.txt or dict.fr.txt to have the words of --dict {other}, "
        "found others; give one of the two as --dict"
    )


def test_a_dictionary_that_is_missing(prior: Run, data: Path) -> None:
    (data / "dict.en.txt").unlink()
    assert prior().error.startswith(f"{data / 'dict.en.txt'}: cannot be read: No such file or directory")


def test_sides_of_different_sizes(prior: Run, data: Path, shell: Shell, tmp_path: Path) -> None:
    less = tmp_path / "less"
    preprocess(
        shell, less, ENGLISH[:1], FRENCH[:1], "--srcdict", data / "dict.en.txt", "--tgtdict", data / "dict.fr.txt"
    )
    for end in ("bin", "idx"):
        shutil.copy(less / f"train.en-fr.fr.{end}", data)
    assert prior().error == (
        f"{data}/train.en-fr: expected as many sentences in both languages, found 25 of en and 1 of fr; run "
        "fairseq-preprocess again"
    )


@pytest.mark.parametrize("content", [b"", b"TNTIDX\x00\x00", b"MMIDIDX\x00\x00\x01"])
def test_an_index_of_another_kind(prior: Run, data: Path, content: bytes) -> None:
    (data / "train.en-fr.en.idx").write_bytes(content)
    assert prior().error == (
        f"{data}/train.en-fr.en.idx: expected the index of a memory-mapped dataset, found something else, or no "
        "sentences; run fairseq-preprocess again, with --dataset-impl mmap (its default)"
    )


def test_an_index_or_data_cut_short(prior: Run, data: Path) -> None:
    index, binary = data / "train.en-fr.en.idx", data / "train.en-fr.en.bin"
    whole, tokens = index.read_bytes(), binary.read_bytes()
    index.write_bytes(whole[:-1])
    assert "expected the index of a memory-mapped dataset" in prior().error
    index.write_bytes(whole)
    binary.write_bytes(tokens[:-3])
    assert prior().error.startswith(f"{binary}: cannot be read (buffer is smaller than requested size); run fairseq-pr")


def test_words_outside_the_dictionary(prior: Run, data: Path) -> None:
    lines = (data / "dict.en.txt").read_text(encoding="utf-8").splitlines()
    (data / "dict.en.txt").write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    assert prior().error.startswith(
        f"{data}/train.en-fr.en.bin: expected numbers of the 6 words of its dictionary, found "
    )


# ---- showing it -----------------------------------------------------------------------------------------------------


def test_the_summary_tells_of_it(prior: Run, data: Path, llrnn: Llrnn) -> None:
    prior()
    shown = llrnn("show", data / "prior").out
    assert "\nparts       lexical            translations of source words, aligned by ibm1; weight 0.5\n" in shown
    assert Prior.load(data / "prior").counts()["source words"] == 7
    [lexical] = json.loads(llrnn("show", data / "prior", "--json").out)["parts"]
    assert lexical.items() >= {"weight": 0.5, "learned": False, "aligner": "ibm1"}.items()
    prior("--lexical-weight", "learned")
    assert "weight learned, starting at 0.5\n" in llrnn("show", data / "prior").out


def test_the_translations_of_a_word(built: Callable[..., Prior], data: Path, llrnn: Llrnn) -> None:
    prior = built()
    done = llrnn("show", data / "prior", "--source", "house", "--source", "Cat")
    house, cat = done.out.split("\n\n")
    assert done.err == "note: 'Cat' is not in the dictionary of this prior; showing 'cat'\n"
    assert house.startswith("house\n  translations  maison 0.") and cat.startswith("cat\n  translations  chat 0.")
    shown = json.loads(llrnn("show", data / "prior", "maison", "--source", "house", "--json").out)
    assert [word["word"] for word in shown["words"]] == ["maison"]
    (row,) = shown["translations"]
    assert (row["source"], [x["word"] for x in row["translations"]]) == ("house", translations(prior, "house"))
    probabilities = [x["probability"] for x in row["translations"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1)
    assert llrnn("show", data / "prior", "--source", "</s>").out == "</s>\n  translations  none\n"


def test_a_source_word_that_is_not_there(prior: Run, data: Path, llrnn: Llrnn) -> None:
    prior()
    assert llrnn("show", data / "prior", "--source", "hous").error == (
        f"{data / 'prior'}: expected a word of its source dictionary, found 'hous'; did you mean 'house'?"
    )


def test_a_prior_without_translations(data: Path, llrnn: Llrnn) -> None:
    llrnn("prior", "--dict", data / "dict.fr.txt", "--top-words", 3, "--out", data / "prior")
    assert "parts" not in llrnn("show", data / "prior").out
    assert llrnn("show", data / "prior", "--source", "house").error == (
        f"--source house: expected a prior with translations or evidence, found none in {data / 'prior'}; build it "
        "with --lexical-translation or --evidence"
    )
