"""`llrnn prior words.morphemes`: from a file, and by Morfessor."""

import json
from functools import partial

import pytest
from small_corpus import Build, Corpus, Llrnn

from fairseq_llrnn.features.feature_table import TOP_FORM
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Prior, Recipe
from fairseq_llrnn.prior.building import build_prior

SEGMENTS = "tables\ttable s\nTable\nchat te\nchien\npetit e\nmaison s\n"


@pytest.fixture
def build(corpus: Corpus, llrnn: Llrnn) -> Build:
    return partial(llrnn, "prior", "--dict", corpus.dictionary, "--top-words", 3, "--out", corpus.out)


def features(corpus: Corpus, word: str, read: bool = False) -> set[str]:
    prior = Prior.load(corpus.out)
    signatures = prior.input if read else prior.output
    return set(signatures.features.row(int(signatures.class_of[prior.index(word)])))


def test_a_file(build: Build, corpus: Corpus, llrnn: Llrnn) -> None:
    path = corpus.write("segments", SEGMENTS)
    done = build("--set", f"words.morphemes={path}", "--set", "words.morpheme_floor=1")
    assert done.code == 0
    assert done.err.splitlines() == [
        "note: 6 dictionary words without a segmentation: the whole word is the stem",
        "note: 1 segmented words that the dictionary lacks: ignored",
        f"note: {path}: 6 of 6 rows read",
    ]
    assert features(corpus, "tables") == {"NOTTOP", "Stem:table", "Ending:s"}
    assert features(corpus, "zut") == {"NOTTOP"}  # the text does not show it, and its stem is no other word's
    assert features(corpus, "12") == {"NOTTOP"}
    assert "Ending:s" in llrnn("show", corpus.out, "tables").out
    settings = json.loads(llrnn("show", corpus.out, "--json").out)["settings"]
    assert (settings["morphemes"], settings["morpheme_floor"]) == ("segments", 1)
    assert settings["sources"][0].startswith("words.morphemes segments ")
    build("--set", f"words.morphemes={path}", "--set", "words.morpheme_floor=2")
    assert features(corpus, "tables") == {"NOTTOP", "Stem:table"}  # of `table`, too
    assert features(corpus, "petite") == {"NOTTOP", "Stem:petit", "Ending:e"} - {"Ending:e"}


def test_which_places_the_model_has(build: Build, corpus: Corpus) -> None:
    """As --suffixes, morphemes are there beside --features; a choice among their groups leaves the others out."""
    common = ("--conllu", corpus.treebank, "--set", "words.guess=off", "--set", "words.morpheme_floor=1")
    common = (*common, "--set", f"words.morphemes={corpus.write('segments', SEGMENTS)}")
    build(*common, "--features", "POS")
    assert features(corpus, "tables") == {"NOTTOP", "POS:NOUN", "Stem:table", "Ending:s"}
    build(*common, "--features", "POS,Ending", "--set", "input_features=Stem,Ending", "--set", "input_top_words=all")
    assert features(corpus, "tables") == {"NOTTOP", "POS:NOUN", "Ending:s"}
    assert features(corpus, "tables", read=True) == {f"{TOP_FORM}:tables", "Stem:table", "Ending:s"}
    assert build(*common, "--features", "POS,Prefix").error == (
        "--features: unknown feature group 'Prefix'; found in the lexicon and patterns: Ending, Gender, Mood, Number, "
        "POS, Stem"
    )


def test_morfessor_cuts_known_and_new_words(build: Build, corpus: Corpus) -> None:
    pytest.importorskip("morfessor")
    stems, endings = ["walk", "talk", "jump", "play", "look", "cook", "kick"], ["", "s", "ed", "ing", "er"]
    words = [stem + ending for stem in stems for ending in endings if stem + ending != "kicking"]
    corpus.dictionary.write_text("".join(f"{word} 2\n" for word in words) + "kicking 0\n", encoding="utf-8")
    done = build("--set", "words.morphemes=morfessor", "--set", "words.morpheme_floor=3")
    assert (done.code, done.err) == (0, "")
    assert features(corpus, "kicking") == {"NOTTOP", "Stem:kick", "Ending:ing"}
    words = LexiconOptions(morphemes="morfessor", morpheme_floor=3)
    again = build_prior(corpus.dictionary, Recipe(top_words=3, words=words))
    assert again.fingerprint == Prior.load(corpus.out).fingerprint
    assert Prior.load(corpus.out).settings["sources"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "words.morpheme_floor=3"], "words.morpheme_floor: it needs words.morphemes; add that"),
        (["--set", "words.morphemes=SEGMENTS", "words.morpheme_floor=0"],
         "--set words.morpheme_floor: expected a number of at least 1, found 0; correct it"),
        (["--set", "words.morphemes=SEGMENTS", "--pieces", "bpe"],
         "words.morphemes: morphemes are of whole words, found --pieces bpe; preprocess words, or leave"),
        (["--set", "words.morphemes=BAD"],
         "BAD, line 1: expected segments that spell the word 'tables', found 'table'; fix the row"),
        (["--set", "words.morphemes=OTHER"],
         "OTHER: expected words of the dictionary, cut into segments, found none of them; is it a file of this "
         "language, one word a line, in the case and Unicode form of the text (keep_case, normalize)?"),
        (["--set", "words.morphemes=nothing"], "nothing: cannot be read: No such file or directory; check the path and "
         "its rights"),
    ],
)  # fmt: skip
def test_errors(build: Build, corpus: Corpus, options: list[str], message: str) -> None:
    files = {"SEGMENTS": SEGMENTS, "BAD": "tables\ttable\n", "OTHER": "dog s\n"}
    paths = {name: corpus.write(name, text) for name, text in files.items()}
    replaced = {f"words.morphemes={name}": f"words.morphemes={path}" for name, path in paths.items()}
    assert message in build(*(replaced.get(option, option) for option in options)).error
