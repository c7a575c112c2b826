"""`llrnn prior`: every option does what it says, every error is one line, the same input gives the same bytes."""

import errno
import hashlib
import json
import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from shell import script
from small_corpus import Build, Corpus, Done, Llrnn

from fairseq_llrnn.features.readers.apertium import ANALYSERS_FOLDER
from fairseq_llrnn.files import atomic_write
from fairseq_llrnn.prior.prior import Prior

Built = Callable[..., Prior]


@pytest.fixture
def build(corpus: Corpus, llrnn: Llrnn) -> Build:
    """Run `llrnn prior` on the small corpus; later options win."""

    def run(*options: object) -> Done:
        return llrnn(
            "prior", "--dict", corpus.dictionary, "--conllu", corpus.treebank, "--top-words", 3, "--out", corpus.out,
            "--guess", "off", *options,
        )  # fmt: skip

    return run


@pytest.fixture
def built(build: Build, corpus: Corpus) -> Built:
    """As `build`, and load what was written."""

    def run(*options: object) -> Prior:
        done = build(*options)
        assert done.code == 0, done.err
        return Prior.load(corpus.out)

    return run


def row(prior: Prior, word: str) -> dict[str, float]:
    """φ of a word."""
    return prior.output.features.row(int(prior.output.class_of[prior.symbols.index(word)]))


def read_row(prior: Prior, word: str) -> dict[str, float]:
    """ψ of a word."""
    return prior.input.features.row(int(prior.input.class_of[prior.symbols.index(word)]))


def weight(prior: Prior, word: str) -> float:
    """b of a word."""
    return float(np.exp(prior.log_weights[prior.symbols.index(word)]))


def last_lines(text: str) -> str:
    """What stays in sight of a stream with progress bars."""
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


def files(directory: Path) -> dict[str, str]:
    """Hashes of all files of a directory."""
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(directory.iterdir())}


# ---- what it makes --------------------------------------------------------------------------------------------------


def test_features_signatures_and_background(built: Built) -> None:
    prior = built()
    assert row(prior, "chat") == {
        "TOPFORM:chat": 1, "POS:NOUN": 1, "Gender:Masc": 1, "Number:Sing": 1
    }  # fmt: skip
    assert row(prior, "petite") == {"NOTTOP": 1, "POS:ADJ": 1, "Gender:Fem": 1, "Number:Sing": 1}
    assert row(prior, "zut") == {"NOTTOP": 1}
    assert row(prior, "</s>") == {"SPECIAL:</s>": 1}
    assert prior.input is prior.output
    assert np.exp(prior.log_weights).sum() == pytest.approx(1)
    assert weight(prior, "le") > weight(prior, "la") > weight(prior, "zut") > 0
    for word in ("<s>", "<pad>", "madeupword0000"):
        assert weight(prior, word) == 0


def test_it_says_what_was_made(build: Build, corpus: Corpus) -> None:
    done = build()
    assert done.code == 0
    figures = dict(line.rsplit(None, 1) for line in done.out.splitlines()[:-1] if not line.startswith("lexicon: "))
    assert figures["words"] == "17"
    assert figures["ordinary words"] == "12"
    assert figures["forbidden words"] == "3"
    assert done.out.splitlines()[-1] == f"prior written to {corpus.out}"
    assert done.err.startswith("note: 1 dictionary words that the lexicon lacks\nwarning: the lexicon has ")


def test_the_json_is_for_people(built: Built, corpus: Corpus) -> None:
    built("--suffixes", 2, "--shapes")
    description = json.loads((corpus.out / "prior.json").read_text(encoding="utf-8"))
    assert description["settings"]["top_words"] == 3
    assert description["settings"]["suffix_floor"] == 2
    assert description["settings"]["shapes"] is True
    assert description["counts"]["words"] == 17
    assert "TOPFORM:le" in description["output_features"]
    assert sorted(f.name for f in corpus.out.iterdir()) == ["arrays.npz", "dictionary.txt", "prior.json"]


@pytest.mark.parametrize("options", [[], ["--shapes", "--suffixes", "2"], ["--input-features", "POS"], ["--softmax"]])
def test_same_input_same_bytes(corpus: Corpus, options: list[str]) -> None:
    """In processes whose sets and dictionaries are ordered by different hash seeds."""
    features = [] if "--softmax" in options else ["--conllu", str(corpus.treebank), "--top-words", "3"]
    made = []
    for seed in ("1", "2"):
        out = corpus.place / f"prior{seed}"
        done = subprocess.run(
            [
                script("llrnn"), "prior", "--dict", str(corpus.dictionary), *features,
                *options, "--out", str(out),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        made.append(files(out))
    assert made[0] == made[1]
    assert len(made[0]) == 3


def test_a_second_run_replaces_the_first(built: Built, corpus: Corpus) -> None:
    built()
    first = files(corpus.out)
    built()
    assert files(corpus.out) == first
    built("--top-words", 4)
    assert files(corpus.out) != first
    assert [p.name for p in corpus.place.iterdir() if p.name.startswith(".")] == []


# ---- every option ---------------------------------------------------------------------------------------------------


def test_top_words_all(built: Built) -> None:
    prior = built("--top-words", "all")
    assert all(f"TOPFORM:{word}" in prior.output.features.names for word in ("le", "zut", "12"))
    assert "NOTTOP" not in prior.output.features.names


def test_top_words_none(built: Built) -> None:
    assert row(built("--top-words", 0), "le") == {"NOTTOP": 1, "POS:DET": 1, "Gender:Masc": 1, "Number:Sing": 1}


@pytest.mark.parametrize("number", [13, -1])
def test_top_words_out_of_range(build: Build, number: int) -> None:
    assert build("--top-words", number).error == (
        f"--top-words {number}: expected a number between 0 and the dictionary's 12 words; give at most 12, or `all`"
    )


def test_no_processes(build: Build) -> None:
    assert build("--workers", 0).error == "--workers 0: expected a number of processes of at least 1"


def test_top_words_that_are_no_number(build: Build) -> None:
    done = build("--top-words", "many")
    assert done.code == 2
    assert "argument --top-words: expected a number of words, `all` or `auto`, found 'many'" in done.err


def test_identities_by_counts(corpus: Corpus, llrnn: Llrnn) -> None:
    """By default a word has an identity if the text shows it often enough, however many words these are."""
    text = corpus.write("counted.txt", "le chat la le chat le chat le chat le chat la zut\n")
    given = ("prior", "--dict", corpus.dictionary, "--count-text", text, "--suffixes", 2, "--out", corpus.out)
    done = llrnn(*given)
    assert done.code == 0, done.err
    prior = Prior.load(corpus.out)
    assert {w for w in prior.symbols if f"TOPFORM:{w}" in prior.output.features.names} == {"le", "chat"}
    assert (prior.settings["top_words"], prior.settings["identity_floor"]) == ("auto", 5)
    assert llrnn(*given, "--identity-floor", 2, "--input-top-words", 1).code == 0
    prior = Prior.load(corpus.out)
    assert {w for w in prior.symbols if f"TOPFORM:{w}" in prior.output.features.names} == {"le", "chat", "la"}
    assert [n for n in prior.input.features.names if n.startswith("TOPFORM")] == ["TOPFORM:le"]


def test_an_identity_floor_for_what_the_network_reads(built: Built) -> None:
    """It goes with --input-top-words auto, too, beside a number of words for the output."""
    prior = built("--input-top-words", "auto", "--identity-floor", 1)
    assert "TOPFORM:petite" in prior.input.features.names and "TOPFORM:petite" not in prior.output.features.names


def test_a_bad_identity_floor(build: Build) -> None:
    assert build("--identity-floor", 2).error == (
        "--identity-floor 2: expected --top-words auto, to which it belongs, found --top-words 3; leave one of them out"
    )
    assert build("--top-words", "auto", "--identity-floor", 0).error == (
        "--identity-floor 0: expected a count of at least 1; for every word, say --top-words all"
    )


def test_words_that_share_a_signature_are_counted(corpus: Corpus, llrnn: Llrnn) -> None:
    """`zut` and `37` have nothing but NOTTOP; `la`, `le` and `chat` have identities."""
    dictionary = corpus.write("few.txt", "le 9\nla 8\nchat 7\nzut 4\n37 2\n")
    text = corpus.write("few-text.txt", "le la chat chat zut 37 le la\n")
    done = llrnn("prior", "--dict", dictionary, "--count-text", text, "--top-words", 3, "--out", corpus.out)
    figures = dict(line.rsplit(None, 1) for line in done.out.splitlines()[:-1])
    assert figures["words that share a signature"] == "2"
    assert figures["… as a share of the text"] == "25.0%"


def test_feature_groups(built: Built) -> None:
    assert row(built("--features", "POS, Gender"), "petite") == {"NOTTOP": 1, "POS:ADJ": 1, "Gender:Fem": 1}


def test_a_misspelt_feature_group(build: Build) -> None:
    assert build("--features", "POS,Gendre").error == (
        "--features: unknown feature group 'Gendre'; found in the lexicon and patterns: Gender, Mood, Number, POS; "
        "did you mean 'Gender'?"
    )


def test_feature_groups_without_any_lexicon(corpus: Corpus, llrnn: Llrnn) -> None:
    done = llrnn("prior", "--dict", corpus.dictionary, "--top-words", 3, "--out", corpus.out, "--features", "POS")
    assert done.error.startswith("--features: unknown feature group 'POS'; found in the lexicon and patterns:")


def test_input_features(built: Built, corpus: Corpus) -> None:
    prior = built("--input-features", "POS")
    assert read_row(prior, "petite") == {"NOTTOP": 1, "POS:ADJ": 1}
    assert row(prior, "petite") == {"NOTTOP": 1, "POS:ADJ": 1, "Gender:Fem": 1, "Number:Sing": 1}
    assert read_row(prior, "le") == {"TOPFORM:le": 1, "POS:DET": 1}
    assert prior.counts()["input signatures"] < prior.counts()["output signatures"]


def test_misspelt_input_features(build: Build) -> None:
    assert build("--input-features", "Nombre").error.startswith("--input-features: unknown feature group 'Nombre';")


def test_input_top_words(built: Built) -> None:
    prior = built("--input-top-words", 6)
    assert read_row(prior, "petite")["TOPFORM:petite"] == 1
    assert "TOPFORM:petite" not in row(prior, "petite")


def test_input_top_words_all(built: Built) -> None:
    prior = built("--input-top-words", "all")
    assert read_row(prior, "zut") == {"TOPFORM:zut": 1}
    assert row(prior, "zut") == {"NOTTOP": 1}


def test_too_many_input_top_words(build: Build) -> None:
    assert build("--input-top-words", 99).error.startswith("--input-top-words 99: expected a number between 0 and")


def test_shapes(built: Built) -> None:
    prior = built("--shapes")
    assert row(prior, "12") == pytest.approx({
        "NOTTOP": 1, "POS:NUM": 1, "Shape:Number": 1, "Shape:SmallNumber": 0.88
    })  # fmt: skip


def test_suffixes(built: Built) -> None:
    prior = built("--suffixes", 2)  # only `te` is shared: by petite and chatte
    assert [name for name in prior.output.features.names if name.startswith("Suffix:")] == ["Suffix:te"]
    assert row(prior, "chatte")["Suffix:te"] == 1


def test_the_default_floor_of_suffixes_is_beyond_a_dozen_words(built: Built) -> None:
    assert not any(name.startswith("Suffix:") for name in built("--suffixes").output.features.names)


@pytest.mark.parametrize("floor", [0, -3])
def test_a_floor_below_one(build: Build, floor: int) -> None:
    assert build("--suffixes", floor).error == f"--suffixes {floor}: expected a number of word types of at least 1"


def test_patterns(built: Built, corpus: Corpus) -> None:
    patterns = corpus.write("patterns.toml", "[patterns]\ndigits = '\\d+'\nsmall = 'petite?'\n")
    prior = built("--patterns", patterns)
    assert row(prior, "12") == {"NOTTOP": 1, "POS:NUM": 1, "Pattern:digits": 1}
    assert row(prior, "petite")["Pattern:small"] == 1
    assert prior.settings["patterns"] == ["digits", "small"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[patterns]\nodd = '('\n", "pattern 'odd' is no regular expression"),
        ("[patterns]\nodd = 'q+'\n", "pattern 'odd' ('q+') matches no word of the vocabulary"),
        ("[patterns\n", "is not TOML"),
        ("", "expected a table [patterns]"),
    ],
)
def test_patterns_that_cannot_be_used(build: Build, corpus: Corpus, text: str, says: str) -> None:
    path = corpus.write("patterns.toml", text)
    error = build("--patterns", path).error
    assert error.startswith(f"{path}: ")
    assert says in error


def test_patterns_that_are_not_there(build: Build, corpus: Corpus) -> None:
    assert "nowhere.toml: cannot be read" in build("--patterns", corpus.place / "nowhere.toml").error


def test_keep_case(built: Built, build: Build) -> None:
    assert row(built(), "le")["POS:DET"] == 1
    assert row(built("--keep-case"), "le") == {"TOPFORM:le": 1}  # the treebank has `Le` only


def test_a_lexicon_beside_the_treebank(built: Built, corpus: Corpus) -> None:
    lexicon = corpus.write("lexicon.tsv", "Zut\tzut\tINTJ\t_\nchat\tchat\tVERB\t_\n")
    prior = built("--lexicon", lexicon)
    assert row(prior, "zut") == {"NOTTOP": 1, "POS:INTJ": 1}
    assert {"POS:NOUN", "POS:VERB"} <= set(row(prior, "chat"))


@pytest.mark.skipif(
    shutil.which("lt-proc") is None or not list(ANALYSERS_FOLDER.glob("apertium-*/fra-cat.automorf.bin")),
    reason="lt-proc or its French analyser is absent: apt install lttoolbox apertium-fra-cat",
)
def test_analyses_by_apertium(built: Built, build: Build) -> None:
    prior = built("--apertium", "fra-cat")
    assert row(prior, "zut") == {"NOTTOP": 1, "POS:INTJ": 1}  # the treebank lacks it
    assert {"Mood:Ind", "Tense:Pres", "Person:3"} <= set(row(prior, "dort"))  # the treebank's Mood, the analyser's rest
    assert row(prior, "</s>") == {"SPECIAL:</s>": 1}
    assert prior.settings["lexicon_entries"] == 12
    assert build("--apertium", "fra-zzz").error.startswith("there is no Apertium analyser 'fra-zzz': expected the path")


def test_features_of_unimorph(built: Built, build: Build, corpus: Corpus) -> None:
    lexicon = corpus.write("fra", "zut\tZut\tINTJ\npetit\tpetite\tADJ;FEM;SG\n")
    assert row(built("--unimorph", lexicon), "zut") == {"NOTTOP": 1, "POS:INTJ": 1}
    assert any(s.startswith("--unimorph fra ") for s in built("--unimorph", lexicon).settings["sources"])
    broken = corpus.write("broken", "zut\tzut INTJ\n")
    assert build("--unimorph", broken).error.startswith(f"{broken}, line 1: expected at least 3 columns (lemma, form")


def test_apertium_that_is_not_installed(build: Build, monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    monkeypatch.setenv("PATH", "")
    assert build("--apertium", "fra-cat").error == (
        "the program lt-proc is not installed; it is in Debian's package lttoolbox (apt install lttoolbox)"
    )
    assert not corpus.out.exists()


def test_softmax(corpus: Corpus, llrnn: Llrnn) -> None:
    assert llrnn("prior", "--dict", corpus.dictionary, "--softmax", "--out", corpus.out).code == 0
    prior = Prior.load(corpus.out)
    assert prior.output.num_classes == len(prior.symbols) == 17
    assert row(prior, "zut") == {"TOPFORM:zut": 1}
    assert weight(prior, "le") == weight(prior, "zut") == weight(prior, "</s>") == pytest.approx(1 / 14)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--conllu", ["train.conllu"]), ("--lexicon", ["l.tsv"]), ("--features", ["POS"]), ("--apertium", ["fra-cat"]),
        ("--unimorph", ["u"]),
        ("--input-features", ["POS"]), ("--patterns", ["p.toml"]), ("--shapes", []), ("--suffixes", ["5"]),
        ("--top-words", ["5"]), ("--background", ["unigram"]), ("--count-text", ["train.txt"]),
        ("--keep-case", []),
    ],
)  # fmt: skip
def test_softmax_beside_features(corpus: Corpus, llrnn: Llrnn, option: str, values: list[str]) -> None:
    done = llrnn("prior", "--dict", corpus.dictionary, "--softmax", "--out", corpus.out, option, *values)
    assert done.error == f"--softmax: a softmax takes no other option, found {option} beside it; leave one of them out"
    assert not corpus.out.exists()


def test_features_chosen_do_not_switch_off_those_asked_for(built: Built) -> None:
    prior = built("--features", "POS", "--shapes", "--suffixes", "2")
    groups = {name.partition(":")[0] for name in prior.output.features.names}
    assert {"POS", "Shape", "Suffix"} <= groups and "Gender" not in groups


def test_real_values_and_where_all_came_from(built: Built, corpus: Corpus) -> None:
    path = corpus.write("values.tsv", "chat\tSize:Small\t0.25\n")
    prior = built("--values", path)
    assert row(prior, "chat")["Size:Small"] == 0.25
    sources = prior.settings["sources"]
    assert [source.split()[:2] for source in sources] == [["--conllu", "train.conllu"], ["--values", "values.tsv"]]
    corpus.write("values.tsv", "chat\tSize:Small\t0.5\n")
    assert built("--values", path).settings["sources"][1] != sources[1]


def test_options_that_would_have_no_say(build: Build) -> None:
    assert build("--pseudo-count", 2).error == (
        "--pseudo-count: only additive smoothing adds something; say --smoothing additive, or leave it out"
    )
    assert build("--smoothing", "none", "--background", "uniform").error == (
        "--smoothing: only a unigram is smoothed, found --background uniform; leave one out"
    )


# ---- backgrounds ----------------------------------------------------------------------------------------------------


def test_uniform(built: Built) -> None:
    prior = built("--background", "uniform")
    assert [weight(prior, w) for w in ("le", "zut", "</s>", "<unk>")] == pytest.approx([1 / 14] * 4)


def test_smoothings_differ_and_sum_to_one(built: Built) -> None:
    made = {name: built("--smoothing", name) for name in ("absolute", "additive", "good-turing", "none")}
    assert all(np.exp(p.log_weights).sum() == pytest.approx(1) for p in made.values())
    assert weight(made["none"], "zut") == 0
    assert all(weight(made[name], "zut") > 0 for name in ("absolute", "additive", "good-turing"))
    assert len({weight(p, "zut") for p in made.values()}) == 4


def test_pseudo_count(built: Built) -> None:
    prior = built("--smoothing", "additive", "--pseudo-count", 0.5)
    assert weight(prior, "zut") / weight(prior, "la") == pytest.approx(0.5 / 8.5)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_a_pseudo_count_that_is_not_positive(build: Build, value: str) -> None:
    error = build("--smoothing", "additive", "--pseudo-count", value).error
    assert error == f"--pseudo-count {float(value)}: expected a positive number"


def test_an_unknown_smoothing(build: Build) -> None:
    done = build("--smoothing", "goodturing")
    assert done.code == 2
    assert "argument --smoothing: invalid choice: 'goodturing'" in done.err


def test_count_text(built: Built, corpus: Corpus) -> None:
    text = corpus.write("count.txt", "zut zut zut la zut\nzut la inconnu\n")
    prior = built("--count-text", text, "--top-words", 1, "--smoothing", "none")
    assert "TOPFORM:zut" in row(prior, "zut")
    assert "NOTTOP" in row(prior, "le")
    assert weight(prior, "zut") == pytest.approx(5 / 10)
    assert weight(prior, "</s>") == pytest.approx(2 / 10)
    assert weight(prior, "<unk>") == pytest.approx(1 / 10)
    assert weight(prior, "le") == 0


def test_several_count_texts(built: Built, corpus: Corpus) -> None:
    texts = [corpus.write("a.txt", "zut\n"), corpus.write("b.txt", "zut la\n")]
    prior = built("--smoothing", "none", "--count-text", *texts)
    assert weight(prior, "zut") == pytest.approx(2 * weight(prior, "la"))


def test_a_count_text_that_is_not_there(build: Build, corpus: Corpus) -> None:
    assert "nowhere.txt: cannot be read: No such file" in build("--count-text", corpus.place / "nowhere.txt").error


def test_a_count_text_that_is_not_utf8(build: Build, corpus: Corpus) -> None:
    path = corpus.write("latin.txt", "le\nété\n".encode("latin-1"))
    assert build("--count-text", path).error == (
        f"{path}, line 2, byte 1: expected UTF-8, found the byte 0xe9 (invalid continuation byte); "
        "convert the file to UTF-8"
    )


@pytest.mark.parametrize("text", ["", "des mots tout autres\n"])
def test_a_count_text_without_any_word_of_the_dictionary(build: Build, corpus: Corpus, text: str) -> None:
    error = build("--count-text", corpus.write("other.txt", text)).error
    assert "expected counts, found none for any word of the dictionary" in error


def test_weights_from_a_file(built: Built, corpus: Corpus) -> None:
    path = corpus.write("weights.tsv", "le\t3\nla\t0\n\n</s>\t1e0\n")
    prior = built("--background", path)
    assert (weight(prior, "le"), weight(prior, "</s>")) == (pytest.approx(0.75), pytest.approx(0.25))
    assert weight(prior, "la") == weight(prior, "chat") == 0
    assert prior.counts()["forbidden words"] == 15
    assert prior.settings["background"] == str(path)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("le\tnan\n", 1, "expected a finite weight ≥ 0 for 'le', found nan; fix the row"),
        ("la\t1\nle\tinf\n", 2, "expected a finite weight ≥ 0 for 'le', found inf; fix the row"),
        ("le\t-0.5\n", 1, "expected a finite weight ≥ 0 for 'le', found -0.5; fix the row"),
        ("le\tbeaucoup\n", 1, "expected a number as weight of 'le', found 'beaucoup'; fix the row"),
        ("le\t\n", 1, "expected a number as weight of 'le', found ''; fix the row"),
        ("la\t1\n\nloup\t1\n", 3, "word 'loup' is not in the dictionary; remove the row or add the word"),
        ("<pad>\t1\n", 1, "word '<pad>' is not in the dictionary; remove the row or add the word"),
        ("le\t1\nla\t1\nle\t2\n", 3, "word 'le' was already given in line 1; remove one of them"),
        ("le 1\n", 1, "expected `word<TAB>weight`, found 1 columns; fix the row"),
        ("le\t1\tx\n", 1, "expected `word<TAB>weight`, found 3 columns; fix the row"),
    ],
)
def test_weights_that_cannot_be_used(build: Build, corpus: Corpus, text: str, line: int, says: str) -> None:
    path = corpus.write("weights.tsv", text)
    assert build("--background", path).error == f"{path}, line {line}: {says}"
    assert not corpus.out.exists()


@pytest.mark.parametrize("text", ["", "le\t0\nla\t0\n"])
def test_weights_without_mass(build: Build, corpus: Corpus, text: str) -> None:
    path = corpus.write("weights.tsv", text)
    assert build("--background", path).error == (
        f"{path}: expected at least one positive weight, found none; give weights of dictionary words"
    )


def test_a_background_that_is_neither_kind_nor_file(build: Build) -> None:
    assert build("--background", "unigramm").error == (
        "--background unigramm: expected unigram, uniform, language:CODE, ngram:FILE, ngram:N, automaton:FILE, "
        "model:FILE, cache:N or the path of a TSV file with `word<TAB>weight` rows, found no such file; check the "
        "spelling"
    )


def test_a_background_that_is_a_folder(build: Build, corpus: Corpus) -> None:
    assert build("--background", corpus.place).error.startswith(f"{corpus.place}: cannot be read: Is a directory")


# ---- what it reads --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": expected at least one `symbol count` line, found none; run fairseq-preprocess first"),
        ("le 3\nla\n", ", line 2: expected `symbol count`, found 'la'; give the dict.txt that fairseq-preprocess"),
        ("le -3\n", ", line 1: expected `symbol count`, found 'le -3'; give the dict.txt that fairseq-preprocess"),
        ("le 3\nle 2\n", ", line 2: symbol 'le' was already given in line 1; remove one of them"),
        ("<unk> 2\n", ", line 1: symbol '<unk>' was already given by fairseq itself; remove one of them"),
        (b"\xff\xfe 1\n", ", line 1, byte 1: expected UTF-8, found the byte 0xff"),
    ],
)
def test_a_dictionary_that_cannot_be_used(build: Build, corpus: Corpus, text: str | bytes, says: str) -> None:
    path = corpus.write("broken.txt", text)
    assert build("--dict", path).error.startswith(f"{path}{says}")


def test_a_dictionary_that_is_not_there(build: Build, corpus: Corpus) -> None:
    path = corpus.place / "nowhere" / "dict.txt"
    assert build("--dict", path).error.startswith(f"{path}: cannot be read: No such file or directory")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": expected CoNLL-U sentences, found none"),
        ("1\tle\n", ", line 1: expected 10 columns separated by tabs, found 2"),
        (b"1\t\xe9t\xe9\t_\tX\t_\t_\t0\t_\t_\t_\n", ", line 1, byte 3: expected UTF-8"),
        ("x" * 2_000_000, ", line 1: the line has more than"),
    ],
)
def test_a_treebank_that_cannot_be_used(build: Build, corpus: Corpus, text: str | bytes, says: str) -> None:
    path = corpus.write("broken.conllu", text)
    error = build("--conllu", corpus.treebank, path).error
    assert error.startswith(f"{path}{says}")
    assert len(error) < 1000
    assert not corpus.out.exists()


def test_a_lexicon_that_cannot_be_used(build: Build, corpus: Corpus) -> None:
    path = corpus.write("broken.tsv", "chat\n")
    assert build("--lexicon", path).error.startswith(f"{path}, line 1: ")


# ---- where it writes ------------------------------------------------------------------------------------------------


def test_a_place_below_a_file(build: Build, corpus: Corpus) -> None:
    out = corpus.dictionary / "prior"
    error = build("--out", out).error
    assert error.startswith(f"{out}: the prior cannot be written (")
    assert error.endswith("check the rights and the free space there, or give another --out")


def test_folders_on_the_way_are_made(build: Build, corpus: Corpus) -> None:
    out = corpus.place / "new" / "deep" / "prior"
    assert build("--out", out).code == 0
    Prior.load(out)
    assert list(out.parent.iterdir()) == [out]


def test_a_folder_of_other_things_is_left_alone(build: Build, corpus: Corpus) -> None:
    corpus.out.mkdir()
    (corpus.out / "thesis.tex").write_text("years of work")
    assert build().error == (
        f"{corpus.out}: expected a free name or an earlier prior, found something else there; give another --out"
    )
    assert [f.name for f in corpus.out.iterdir()] == ["thesis.tex"]


def test_a_file_is_left_alone(build: Build, corpus: Corpus) -> None:
    corpus.write("prior", "my notes")
    assert "found something else there" in build().error
    assert corpus.out.read_text() == "my notes"


def test_an_empty_folder_is_free(build: Build, corpus: Corpus) -> None:
    corpus.out.mkdir()
    assert build().code == 0
    Prior.load(corpus.out)


def test_a_full_disk_leaves_nothing_behind_and_the_earlier_prior_alone(
    build: Build, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build().code == 0
    before, names = files(corpus.out), sorted(p.name for p in corpus.place.iterdir())

    def full(file: IO[bytes], _: object) -> None:
        file.write(b"half of them")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("fairseq_llrnn.prior.directory.write_arrays", full)
    assert build("--top-words", 4).error.startswith(
        f"{corpus.out}: the prior cannot be written (No space left on device); check the rights and the free space"
    )
    assert files(corpus.out) == before
    assert sorted(p.name for p in corpus.place.iterdir()) == names


def test_a_real_limit_on_what_can_be_written(corpus: Corpus) -> None:
    """The kernel refuses the write, as on a full disk."""
    done = subprocess.run(
        [
            script("llrnn"), "prior", "--dict", str(corpus.dictionary), "--softmax", "--out", str(corpus.out),
        ],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600)), capture_output=True,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert last_lines(done.stderr.decode()) == (
        f"llrnn: error: {corpus.out}: the prior cannot be written (File too large); check the rights and the free "
        "space there, or give another --out\n"
    )
    assert sorted(p.name for p in corpus.place.iterdir()) == ["dict.txt", "train.conllu"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_rename_that_fails_keeps_the_earlier_prior(
    can_exchange: bool, build: Build, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build().code == 0
    before, names = files(corpus.out), sorted(p.name for p in corpus.place.iterdir())
    replace = os.replace

    def refuse(source: Path, target: Path) -> bool:
        new = Path(source) / "prior.json"
        if new.exists() and json.loads(new.read_text(encoding="utf-8"))["settings"]["top_words"] == 4:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target)
        return False

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(atomic_write, "exchange", refuse if can_exchange else lambda one, other: False)
    assert "the prior cannot be written (Input/output error)" in build("--top-words", 4).error
    assert files(corpus.out) == before
    assert sorted(p.name for p in corpus.place.iterdir()) == names


def test_into_the_folder_we_are_in(build: Build, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build().code == 0
    first = files(corpus.out)
    monkeypatch.chdir(corpus.out)
    build("--out", ".")
    assert files(corpus.out) == first  # whether it was made again or refused
