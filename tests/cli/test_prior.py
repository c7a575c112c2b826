"""`llrnn prior`: what it makes and says; the same input gives the same bytes."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from shell import run_script
from small_corpus import Build, Built, Corpus, Llrnn, files, row, weight


def test_features_signatures_and_background(built: Built) -> None:
    prior = built()
    assert row(prior, "chat") == {"TOPFORM:chat": 1, "POS:NOUN": 1, "Gender:Masc": 1, "Number:Sing": 1}
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
    figures = dict(re.findall(r"^(.+?)  +([\d,.%]+)", done.out, re.MULTILINE))
    assert figures["words"] == "17"
    assert figures["ordinary words"] == "12"
    assert figures["forbidden words"] == "3"
    assert done.out.splitlines()[-2] == f"prior written to {corpus.out}"
    assert done.err.startswith("note: 1 dictionary words that the lexicon lacks\nwarning: the lexicon has ")
    advice = "guessed: nothing; --set words.guess=on guesses features of words outside the lexicon"
    assert advice in done.out.splitlines()
    assert advice not in build("--set", "words.guess=on").out


@pytest.mark.parametrize(
    ("files", "name", "options", "said"),
    [
        ([], "dict.txt", [], "DATA --prior {out}   (DATA: made with this --dict)"),
        (["train.idx"], "dict.txt", [], "{folder} --prior {out}"),
        (["train.en-fr.en.idx", "train.en-fr.fr.idx"], "dict.fr.txt", [], "{folder} --prior {out}"),
        (["train.en-fr.en.idx", "train.en-fr.fr.idx"], "dict.en.txt", [], "{folder} --prior PRIOR --source-prior {out} "
         "  (PRIOR: the target's prior)"),
        (["train.en-fr.en.idx", "train.en-fr.fr.idx"], "dict.en.txt", ["--evidence", "numbers"],
         "{folder} --source-lang fr --target-lang en --prior {out}"),
        (["train.text-labels.labels.idx"], "dict.labels.txt", ["--labels"], "{folder} --prior {out}"),
    ],
)  # fmt: skip
def test_it_ends_with_what_to_type_next(
    llrnn: Llrnn, corpus: Corpus, files: list[str], name: str, options: list[str], said: str
) -> None:
    folder = corpus.place / "my data"
    folder.mkdir()
    for dictionary in {name, "dict.fr.txt", "dict.en.txt"} if files and "en" in files[0] else {name}:
        (folder / dictionary).write_bytes(corpus.dictionary.read_bytes())
    for file in files:
        (folder / file).touch()
    done = llrnn("prior", "--dict", folder / name, "--out", folder / "prior", *options)
    expected = said.format(folder=f"'{folder}'", out=f"'{folder / 'prior'}'")
    assert (done.code, done.out.splitlines()[-1]) == (0, f"next: llrnn train {expected}")


OPTIONS = {
    "plain": ("--top-words", 3),
    "spelling": ("--top-words", 3, "--shapes", "--suffixes", 2),
    "psi": ("--top-words", 3, "--set", "input_features=POS"),
    "softmax": ("--softmax",),
}
PRIORS = """
import json, sys
from fairseq_llrnn.cli import main
for arguments in json.loads(sys.argv[1]):
    assert main.main(["prior", *arguments]) == 0
"""


@pytest.fixture(scope="module")
def of_two_seeds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Priors of all OPTIONS, by processes whose sets and dictionaries are ordered by different hash seeds."""
    corpus = Corpus.make(tmp_path_factory.mktemp("seeds"))
    places = [corpus.place / seed for seed in ("1", "2")]
    for place in places:
        place.mkdir()
        commands = []
        for name, options in OPTIONS.items():
            features = () if name == "softmax" else ("--conllu", corpus.treebank)
            given = ("--dict", corpus.dictionary, *features, *options, "--out", place / name)
            commands.append([str(argument) for argument in given])
        run_script(sys.executable, "-c", PRIORS, json.dumps(commands), variables={"PYTHONHASHSEED": place.name})
    return places


@pytest.mark.parametrize("name", OPTIONS)
def test_same_input_same_bytes(of_two_seeds: list[Path], name: str) -> None:
    made = [files(place / name) for place in of_two_seeds]
    assert made[0] == made[1]
    assert len(made[0]) == 4


def test_a_second_run_replaces_the_first(build: Build, corpus: Corpus) -> None:
    said = f"note: replaced another prior in {corpus.out}; models trained with that prior cannot use this one"
    assert said not in build().err
    first = files(corpus.out)
    assert said not in build().err
    assert files(corpus.out) == first
    assert said in build("--top-words", 4).err
    assert files(corpus.out) != first
    assert [p.name for p in corpus.place.iterdir() if p.name.startswith(".")] == []
