"""`llrnn prior --lexical-translation` and `llrnn show --source`, on what fairseq-preprocess really writes."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from shell import Shell
from small_bitext import Run, preprocess, translations
from small_corpus import Llrnn

from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

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


def test_options(built: Callable[..., Prior]) -> None:
    one = built("--set", "translations.weight=0.25", "--set", "translations.top=1")
    part = one.find(LexicalPart)
    assert (part.weight, part.learned) == (0.25, False)
    assert np.diff(part.table.offsets).max() == 1
    learned = built("--set", "translations.learned=true")
    part = learned.find(LexicalPart)
    assert (part.weight, part.learned) == (0.5, True)
    assert len(list(learned.background().parameters())) == 1


def test_the_dictionary_says_which_side_is_the_target(built: Callable[..., Prior], data: Path) -> None:
    """One data-bin serves both directions, as fairseq itself has it."""
    assert translations(built("--dict", data / "dict.en.txt"), "maison")[0] == "house"


@pytest.mark.parametrize(("target", "word", "translation"), [("fr", "house", "maison"), ("en", "maison", "house")])
def test_a_joined_dictionary(made: Path, built: Callable[..., Prior], target: str, word: str, translation: str) -> None:
    joined = made / "joined"
    prior = built("--dict", joined / f"dict.{target}.txt", "--lexical-translation", joined)
    assert translations(prior, word)[0] == translation


def test_pairs_that_cannot_be_aligned_are_counted(shell: Shell, tmp_path: Path, llrnn: Llrnn) -> None:
    data = tmp_path / "data"
    preprocess(shell, data, ["house", ""], ["maison", ""])
    done = llrnn(
        "prior", "--dict", data / "dict.fr.txt", "--lexical-translation", data, "--set", "translations.aligner=ibm1",
        "--top-words", 1,
        "--out", data / "prior",
    )  # fmt: skip
    assert done.code == 0
    assert done.err == "note: 1 sentence pairs not aligned: a side without words, or of more than 1,023\n"


@pytest.mark.skipif(importlib.util.find_spec("eflomal") is None, reason="eflomal is not installed")
@pytest.mark.parametrize("aligner", ["eflomal", "auto"])
def test_eflomal(built: Callable[..., Prior], aligner: str) -> None:
    lexical = built("--set", f"translations.aligner={aligner}").find(LexicalPart)
    assert lexical is not None and lexical.aligner == "eflomal"


# ---- showing it -----------------------------------------------------------------------------------------------------


def test_the_summary_tells_of_it(prior: Run, data: Path, llrnn: Llrnn) -> None:
    prior()
    shown = llrnn("show", data / "prior").out
    assert "\nparts       lexical            translations of source words, aligned by ibm1; weight 0.5\n" in shown
    assert Prior.load(data / "prior").counts()["source words"] == 7
    [lexical] = json.loads(llrnn("show", data / "prior", "--json").out)["parts"]
    assert lexical.items() >= {"weight": 0.5, "learned": False, "aligner": "ibm1"}.items()
    prior("--set", "translations.learned=true")
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
    listed = row["parts"]["translations"]
    assert (row["source"], [x["word"] for x in listed]) == ("house", translations(prior, "house"))
    probabilities = [x["probability"] for x in listed]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1)
    assert llrnn("show", data / "prior", "--source", "</s>").out == "</s>\n  translations  none\n"


def test_a_prior_without_translations(data: Path, llrnn: Llrnn) -> None:
    llrnn("prior", "--dict", data / "dict.fr.txt", "--top-words", 3, "--out", data / "prior")
    assert "parts" not in llrnn("show", data / "prior").out
    assert llrnn("show", data / "prior", "--source", "house").error == (
        f"--source house needs a prior with translations or copying, {data / 'prior'} has neither; build it with "
        "--lexical-translation or --evidence"
    )
