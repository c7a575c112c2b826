"""Options that `llrnn prior` had: one line says how the same is written now."""

import re

import pytest
from small_corpus import Corpus, Llrnn

from fairseq_llrnn.cli.main import Parser, load
from fairseq_llrnn.cli.prior.old_names import KEYS, OLD_NAMES
from fairseq_llrnn.prior.background_terms import read_background
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.settings import keys


@pytest.mark.parametrize("option", OLD_NAMES)
def test_one_line_names_the_new_way(llrnn: Llrnn, corpus: Corpus, option: str) -> None:
    for given in ([option, "0.5"], [f"{option}=0.5"]):
        done = llrnn("prior", "--dict", corpus.dictionary, *given, "--out", corpus.out)
        assert (done.code, done.out) == (2, "") and not corpus.out.exists()
        assert done.error == f"{option} 0.5: is now written {OLD_NAMES[option].format('0.5')}"
    assert option not in {name for action in Parser(load("prior"))._actions for name in action.option_strings}


def test_several_values(llrnn: Llrnn) -> None:
    assert llrnn("prior", "--ngram-prune", 0, 1, "--out", "x").error == (
        "--ngram-prune 0 1: is now written in the background: --background 'ngram(3, prune=[0, 1])'"
    )


@pytest.mark.parametrize("option", KEYS)
def test_the_key_is_one(option: str) -> None:
    assert KEYS[option] in {key.name for key in keys(Recipe)}
    assert KEYS[option] in OLD_NAMES[option]


@pytest.mark.parametrize("option", [name for name, said in OLD_NAMES.items() if "--background" in said])
def test_the_new_way_is_one(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_llrnn.prior.background_terms.file_of", lambda *_: None)  # whether the files are there
    value = {"--on-zero": "skip", "--unknown-symbols": "drop", "--smoothing": "none", "--folds": "3"}.get(option, "0.5")
    for said in re.findall(r"'(.*?)'", OLD_NAMES[option].format("0, 1" if "prune" in option else value)):
        read_background(said)
