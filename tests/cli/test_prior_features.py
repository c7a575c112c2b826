"""`llrnn prior`: every option about features does what it says, every error is one line."""

import re
import shlex

import pytest
from small_corpus import Build, Built, Corpus, Llrnn, read_row, row, weight

from fairseq_llrnn.prior.prior import Prior


@pytest.mark.parametrize(
    ("options", "word", "output", "read"),
    [
        ("--top-words 0", "le", "NOTTOP POS:DET Gender:Masc Number:Sing", None),
        ("--features 'POS, Gender'", "petite", "NOTTOP POS:ADJ Gender:Fem", None),
        ("--set input_features=POS", "petite", "NOTTOP POS:ADJ Gender:Fem Number:Sing", "NOTTOP POS:ADJ"),
        ("--set input_features=POS", "le", "TOPFORM:le POS:DET Gender:Masc Number:Sing", "TOPFORM:le POS:DET"),
        ("--set input_top_words=6", "petite", "NOTTOP POS:ADJ Gender:Fem Number:Sing",
         "TOPFORM:petite POS:ADJ Gender:Fem Number:Sing"),
        ("--set input_top_words=all", "zut", "NOTTOP", "TOPFORM:zut"),
        ("--set words.keep_case=true", "le", "TOPFORM:le", None),  # the treebank has `Le` only
    ],
)  # fmt: skip
def test_features_of_words(built: Built, options: str, word: str, output: str, read: str | None) -> None:
    """What the network reads are the output's features, unless it has its own."""
    prior = built(*shlex.split(options))
    assert row(prior, word) == dict.fromkeys(output.split(), 1)
    assert read_row(prior, word) == dict.fromkeys((read or output).split(), 1)
    if "input_features" in options:
        assert prior.counts()["input signatures"] < prior.counts()["output signatures"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--top-words -1", "--top-words: expected a number of at least 0 or all or auto, found -1; correct it"),
        ("--top-words many", "--top-words: expected a whole number or all or auto, found 'many'; correct it"),
        ("--set workers=0", "--set workers: expected a number of at least 1, found 0; correct it"),
        ("--set workers=1000000", "--set workers: expected a number of at most 256, found 1000000; correct it"),
        ("--suffixes 0", "--suffixes: expected a number of at least 1, found 0; correct it"),
        ("--suffixes -3", "--suffixes: expected a number of at least 1, found -3; correct it"),
        ("--top-words 13", "--top-words 13: expected a number between 0 and the dictionary's 12 words; give at most "
         "12, or `all`"),
        ("--set identity_floor=2", "identity_floor 2: it needs top_words auto, found top_words 3; "
         "leave one of them out"),
        ("--top-words auto --set identity_floor=0", "--set identity_floor: expected a number of at least 1, found 0; "
         "correct it"),
        ("--set input_top_words=99", "input_top_words 99: expected a number between 0 and…"),
        ("--set input_features=Nombre", "input_features: unknown feature group 'Nombre';…"),
        ("--features POS,Gendre", "--features: unknown feature group 'Gendre'; found in the lexicon and patterns: "
         "Gender, Mood, Number, POS; did you mean 'Gender'?"),
        ("--set patterns=nowhere.toml", "…nowhere.toml: cannot be read…"),
        ("--set words.lemma_floor=3", "--set words.lemma_floor: it needs words.language; add that, or "
         "leave it out"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(build: Build, options: str, message: str) -> None:
    build(*shlex.split(options)).refuses(message)


def test_identities_by_counts(corpus: Corpus, llrnn: Llrnn) -> None:
    """By default a word has an identity if the text shows it often enough, however many words these are."""
    text = corpus.write("counted.txt", "le chat la le chat le chat le chat le chat la zut\n")
    given = ("prior", "--dict", corpus.dictionary, "--count-text", text, "--suffixes", 2, "--out", corpus.out)
    done = llrnn(*given)
    assert done.code == 0, done.err
    prior = Prior.load(corpus.out)
    assert {w for w in prior.symbols if f"TOPFORM:{w}" in prior.output.features.names} == {"le", "chat"}
    assert (prior.settings["top_words"], prior.settings["identity_floor"]) == ("auto", 5)
    assert llrnn(*given, "--set", "identity_floor=2", "--set", "input_top_words=1").code == 0
    prior = Prior.load(corpus.out)
    assert {w for w in prior.symbols if f"TOPFORM:{w}" in prior.output.features.names} == {"le", "chat", "la"}
    assert [n for n in prior.input.features.names if n.startswith("TOPFORM")] == ["TOPFORM:le"]


def test_words_that_share_a_signature_are_counted(corpus: Corpus, llrnn: Llrnn) -> None:
    """`zut` and `37` have nothing but NOTTOP; `la`, `le` and `chat` have identities."""
    dictionary = corpus.write("few.txt", "le 9\nla 8\nchat 7\nzut 4\n37 2\n")
    text = corpus.write("few-text.txt", "le la chat chat zut 37 le la\n")
    done = llrnn("prior", "--dict", dictionary, "--count-text", text, "--top-words", 3, "--out", corpus.out)
    figures = dict(re.findall(r"^(.+?)  +([\d,.%]+)", done.out, re.MULTILINE))
    assert figures["words that share a signature"] == "2"
    assert figures["… as a share of the text"] == "25.0%"


def test_patterns(built: Built, corpus: Corpus) -> None:
    patterns = corpus.write("patterns.toml", "[patterns]\ndigits = '\\d+'\nsmall = 'petite?'\n")
    prior = built("--set", f"patterns={patterns}")
    assert row(prior, "12") == {"NOTTOP": 1, "POS:NUM": 1, "Pattern:digits": 1}
    assert row(prior, "petite")["Pattern:small"] == 1
    assert prior.settings["patterns"] == ["digits", "small"]


def test_softmax(corpus: Corpus, llrnn: Llrnn) -> None:
    assert llrnn("prior", "--dict", corpus.dictionary, "--softmax", "--out", corpus.out).code == 0
    prior = Prior.load(corpus.out)
    assert prior.output.num_classes == len(prior.symbols) == 17
    assert row(prior, "zut") == {"TOPFORM:zut": 1}
    assert weight(prior, "le") == weight(prior, "zut") == weight(prior, "</s>") == pytest.approx(1 / 14)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--conllu", ["train.conllu"]), ("--lexicon", ["l.tsv"]), ("--features", ["POS"]), ("--shapes", []),
        ("--suffixes", ["5"]), ("--top-words", ["5"]), ("--background", ["unigram"]), ("--recipe", ["prior.toml"]),
        ("--open-vocabulary", ["neural"]), ("--set", ["words.keep_case=true"]),
        ("--lexical-translation", ["data"]), ("--evidence", ["1"]), ("--set", ["1"]),
        ("--set", ["words.guess=on"]),
    ],
)  # fmt: skip
def test_softmax_with_features(corpus: Corpus, llrnn: Llrnn, option: str, values: list[str]) -> None:
    done = llrnn("prior", "--dict", corpus.dictionary, "--softmax", "--out", corpus.out, option, *values)
    assert done.error == (
        f"{option}: --softmax takes only --dict, --out, --labels and --pieces; remove {option}, or --softmax"
    )
    assert not corpus.out.exists()


def test_a_softmax_over_pieces_has_no_other_features(corpus: Corpus, llrnn: Llrnn) -> None:
    """Figures per word count the words of the pieces."""
    dictionary = corpus.write("dict.pieces.txt", "petit@@ 2\ne 1\nle 3\n")
    assert llrnn("prior", "--softmax", "--pieces", "bpe", "--dict", dictionary, "--out", corpus.out).code == 0
    prior = Prior.load(corpus.out)
    assert prior.settings["pieces"] == "bpe" and row(prior, "petit@@") == {"TOPFORM:petit@@": 1.0}


def test_the_counts_of_a_dictionary_are_named(corpus: Corpus, llrnn: Llrnn) -> None:
    said = "\ncounts: of dict.txt; to count another text, add --count-text\n"
    given = ("prior", "--dict", corpus.dictionary, "--out", corpus.out)
    assert said in llrnn(*given, "--top-words", "all").out
    text = corpus.write("train.txt", "le chat\n")
    assert "counts:" not in llrnn(*given, "--count-text", text).out + llrnn(*given, "--softmax").out


@pytest.mark.parametrize("files", [("train.txt",), ("train.txt", "missing.txt"), ("-",)])
def test_softmax_ignores_counts(corpus: Corpus, llrnn: Llrnn, files: tuple[str, ...]) -> None:
    corpus.write("train.txt", "le chat\n")
    options = "--dict", corpus.dictionary, "--softmax", "--out"
    assert llrnn("prior", *options, corpus.place / "plain").code == 0
    texts = [name if name == "-" else corpus.place / name for name in files]
    done = llrnn("prior", *options, corpus.out, "--count-text", *texts)
    assert done.code == 0
    assert done.err == "note: --count-text is ignored: a prior of --softmax needs no word counts\n"
    for file in corpus.out.iterdir():
        assert file.read_bytes() == (corpus.place / "plain" / file.name).read_bytes()


def test_real_values_and_where_all_came_from(built: Built, corpus: Corpus, llrnn: Llrnn) -> None:
    table, sources = corpus.place / "words.tsv", []
    for value in (0.25, 0.5):
        path = corpus.write("values.tsv", f"chat\tSize:Small\t{value}\n")
        assert llrnn("lexicon", "--values", path, "--out", table).code == 0
        prior = built("--lexicon", table)
        assert row(prior, "chat")["Size:Small"] == value
        sources.append(prior.settings["sources"])
        named = [source.split()[:2] for source in sources[-1]]
        assert named == [["--conllu", "train.conllu"], ["--lexicon", "words.tsv"]]
    assert sources[0][1] != sources[1][1]


@pytest.mark.parametrize("top, signatures", [("2", None), ("6", 11), ("auto", None), ("all", None)])
def test_many_signatures(
    corpus: Corpus, llrnn: Llrnn, top: str, signatures: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hint, unless all words are asked for: each of 10 has an indicator, the others share their shape."""
    monkeypatch.setattr("fairseq_llrnn.cli.prior.summary.HINT_FROM", 16)
    dictionary = corpus.write("many.txt", "".join(f"mot{i} 2\n" for i in range(12)))
    text = corpus.write("many-text.txt", " ".join(f"mot{i}" for i in range(12)) * 2 + "\n")
    given = "--dict", dictionary, "--count-text", text, "--top-words", top, "--out", corpus.out
    done = llrnn("prior", *given)
    hint = f"hint: {signatures} signatures are more than half of the 16 words; training is faster with a smaller"
    hints = [line for line in done.out.splitlines() if "hint" in line]
    assert done.code == 0 and hints == ([f"{hint} --top-words"] if signatures else [])
