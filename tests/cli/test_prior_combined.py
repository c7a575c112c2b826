"""`llrnn prior --background` with several backgrounds, what `llrnn show` says of them, and the same from Python."""

from functools import partial
from pathlib import Path

import pytest
from small_corpus import Build, Corpus, Llrnn

from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import EvidenceOptions, OpenOptions, Recipe
from fairseq_llrnn.prior.building import build_prior

TEXT = "le chat dort\nla petite table\nle petit chat dort\nle chien dort\nla table\n"
GRAMMAR = "0 1 le\n0 2 la\n1 1 petit\n1 3 chat\n1 3 chien\n2 2 petite\n2 3 table\n3 4 dort\n3\n4\n"


@pytest.fixture
def build(corpus: Corpus, llrnn: Llrnn, monkeypatch: pytest.MonkeyPatch) -> Build:
    corpus.write("train.txt", TEXT)
    corpus.write("my grammar.txt", GRAMMAR)
    corpus.write("dict.en.txt", "dog 3\n12 1\n")
    monkeypatch.chdir(corpus.place)

    return partial(llrnn, "prior", "--dict", corpus.dictionary, "--top-words", 3, "--out", corpus.out)


def test_parts_are_shown_in_their_order(build: Build, llrnn: Llrnn, corpus: Corpus) -> None:
    expression = '"automaton:my grammar.txt" times ngram(2, folds=0) times (cache(5, learned) plus uniform)'
    done = build(
        "--background", expression, "--count-text", "train.txt",
        "--evidence", "numbers", "--set", "evidence.unsupported.numbers=0.5", "--set", "source_dictionary=dict.en.txt",
    )  # fmt: skip
    assert done.code == 0, done.err
    shown = llrnn("show", corpus.out).out
    assert f"\nbackground  {expression}\n" in shown
    assert (
        "parts       automaton          an automaton; sentences it forbids are an error\n"
        "            automaton.2        n-grams\n"
        "            cache              the last 5 words; weight learned, starting at 0.9\n"
        "                               decay learned, starting at 0.99\n"
        "            static             weights of its own\n"
        "            evidence           numbers 1; weight 0.25\n"
        "                               numbers, weighed 0.5 times as much without evidence\n"
    ) in shown


def tree(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(directory.iterdir())}


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (
            ["--conllu", "train.conllu", "--count-text", "train.txt", "--suffixes", "2", "--shapes",
             "--background", "unigram(smoothing=additive, pseudo_count=0.5)", "--set", "input_features=POS",
             "--open-vocabulary", "characters"],
            {"words": LexiconOptions(conllu="train.conllu"), "text": "train.txt", "suffixes": 2, "shapes": True,
             "input_features": ("POS",),
             "background": "unigram(smoothing=additive, pseudo_count=0.5)",
             "open_vocabulary": OpenOptions()},
        ),
        (["--background", "ngram(2, folds=2) plus cache(4, weight=0.5)", "--count-text", "train.txt"],
         {"background": "ngram(2, folds=2) plus cache(4, weight=0.5)", "text": ["train.txt"]}),
        (
            ["--background", "automaton:my grammar.txt", "--evidence", "numbers,copies", "--set", "evidence.weight=0.5",
             "--set", "evidence.unsupported.numbers=0"],
            {"background": "automaton:my grammar.txt",
             "evidence": EvidenceOptions(("numbers", "copies"), weight=0.5, unsupported={"numbers": 0.0})},
        ),
    ],
)  # fmt: skip
def test_python_builds_the_same_bytes(
    build: Build, corpus: Corpus, arguments: list[str], options: dict[str, object]
) -> None:
    done = build(*arguments)
    assert done.code == 0, done.err
    build_prior("dict.txt", Recipe(top_words=3, **options)).save("in-python")  # type: ignore[arg-type]
    assert tree(Path("in-python")) == tree(corpus.out)
