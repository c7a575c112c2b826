"""`llrnn prior`: what it makes and says; the same input gives the same bytes."""

import json
import os
import subprocess

import numpy as np
import pytest
from shell import script
from small_corpus import Build, Built, Corpus, files, row, weight


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
