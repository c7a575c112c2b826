"""The scripts around Marian: trained and searched with the head and with a softmax, with terms and with a grammar."""

import os
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from example_modules import EXAMPLES, load

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.features.dictionary import SHIFT, SPECIALS
from fairseq_llrnn.prior import EvidenceOptions, Recipe, TranslationOptions
from fairseq_llrnn.prior.building import build_prior
from toy_french.bilingual import make_bitext, write_bitext

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

SIZES = "--width 8 --ffn 8 --layers 1 --heads 2 --updates 3 --warmup 1 --batch 16".split()


@pytest.fixture(scope="module")
def modules() -> list[ModuleType]:
    return load(EXAMPLES / "huggingface", "marian_training", "translate")


@pytest.fixture(scope="module")
def translate(modules: list[ModuleType]) -> ModuleType:
    return modules[1]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bitext, a prior with translations and terms, and one of the same words with a grammar alone."""
    folder = tmp_path_factory.mktemp("bitext")
    write_bitext(make_bitext(200, seed=1), folder)
    sides = [folder / f"train.{side}" for side in ("en", "fr")]
    english, french = ((*SPECIALS, *sorted(set(side.read_text(encoding="utf-8").split()))) for side in sides)
    bitext = ParallelText.read(*sides, english, french)
    evidence = EvidenceOptions(("terms", "numbers", "copies"))
    options = Recipe(
        text=sides[1], top_words=50, suffixes=5, translations=TranslationOptions(bitext, weight=0.5, aligner="ibm1"),
        evidence=evidence, source_dictionary=english,
    )  # fmt: skip
    build_prior(french, options).save(folder / "prior")
    (folder / "some.grammar").write_text('S -> "le" "livre" V "."\nV -> "est" "petit" | "est"\n', encoding="utf-8")
    build_prior(french, Recipe(top_words="all", background=f"automaton:{folder / 'some.grammar'}")).save(
        folder / "grammar"
    )
    (folder / "some.en").write_text("the cat is small .\nthe house is big .\nzebras sleep .\n", encoding="utf-8")
    (folder / "terms.tsv").write_text("cat\tlivre\nhouse\tmaison\n", encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("output", [[], ["--softmax"], ["--invented-terms", "0.9"]])
def test_what_is_trained_says_required_terms(
    output: list[str], modules: list[ModuleType], texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, translate = modules
    output = [*output, "--term-forms", str(texts / "lexicon.tsv")]
    sources: list[Any] = []
    collate = training.padded
    monkeypatch.setattr(training, "padded", lambda some, *more: sources.extend(some) or collate(some, *more))
    prior, model = ["--prior", str(texts / "prior")], str(tmp_path / "model")
    pair = ["--source", str(texts / "train.en"), "--target", str(texts / "train.fr")]
    mark = tmp_path / "model" / translate.SOFTMAX
    mark.parent.mkdir()
    mark.touch()  # as of an earlier training with a softmax
    translate.main(["train", model, *prior, *pair, *SIZES, *output])
    assert mark.exists() == ("--softmax" in output)
    asked = ["--source", str(texts / "some.en"), "--beam", "2", "--longest", "12", "--to", str(tmp_path / "out")]
    terms = ["--terms", str(texts / "terms.tsv"), "--term-forms", str(texts / "lexicon.tsv")]
    translate.main(["search", model, *prior, *asked, *terms])
    lines = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    said = [{*line.split()} & {"livre", "livres", "maison", "maisons"} for line in lines]
    assert len(lines) == 3 and said[0] <= {"livre", "livres"} and said[1] <= {"maison", "maisons"}
    assert all(said[:2]), lines
    marked = [bool((torch.tensor(one["input_ids"]) >> SHIFT).any()) for one in sources]
    assert any(marked) == ("--invented-terms" in output)
    assert all(("text" in one) == ("--invented-terms" in output) for one in sources)


@pytest.mark.slow
def test_a_training_begins_with_given_weights_in_sorted_batches(
    modules: list[ModuleType], texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a llrnn_transformer, by its names: with a step of no length they are what is saved."""
    from safetensors.torch import load_file

    training, translate = modules
    asked = ["train", str(tmp_path), "--prior", str(texts / "prior"), *SIZES, "--lr", "0"]
    asked += ["--source", str(texts / "train.en"), "--target", str(texts / "train.fr")]
    translate.main([*asked, "--seed", "7"])
    begun = load_file(tmp_path / "model.safetensors")
    state = {"encoder.embed_positions.weights": torch.zeros(1), "encoder.version": torch.ones(1)}
    for name, value in begun.items():
        own, new = next(pair for pair in translate.PLACES if name.startswith(pair[1]))
        state[own + name.removeprefix(new)] = value
    monkeypatch.setattr(translate, "read_checkpoint", lambda path: {"model": state} if path == "start.pt" else None)
    made: list[Any] = []
    batches = training.SortedBatches
    monkeypatch.setattr(training, "SortedBatches", lambda *of: made.append(batches(*of)) or made[-1])
    translate.main([*asked, "--seed", "8", "--weights", "start.pt", "--sorted-batches"])
    ended = load_file(tmp_path / "model.safetensors")
    assert begun.keys() == ended.keys() and all(torch.equal(begun[name], ended[name]) for name in begun)
    assert [batch.epoch for batch in made] == [1]


def test_batches_of_neighbours_by_length(modules: list[ModuleType]) -> None:
    """Every example once an epoch, in the batches of the epoch before, which come in another order."""
    lengths = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    examples = [{"input_ids": [7] * long, "labels": [7] * (1 + long % 3)} for long in lengths]
    batches = modules[0].SortedBatches(examples, 3, seed=1)
    epochs = [list(batches) for _ in range(3)]
    assert sorted(at for batch in epochs[0] for at in batch) == list(range(len(lengths)))
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(epochs[2]) and not epochs[0] == epochs[1] == epochs[2]
    spans = sorted((min(lengths[at] for at in batch), max(lengths[at] for at in batch)) for batch in epochs[0])
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["in training", "in search alone"])
def test_a_grammar_in_training_and_in_search_alone(
    kind: str, translate: ModuleType, texts: Path, tmp_path: Path
) -> None:
    """Its prior knows no source: its words are numbered by the script."""
    (tmp_path / "en").write_text("the cat is small .\nthe cat is .\n", encoding="utf-8")
    (tmp_path / "fr").write_text("le livre est petit .\nle livre est .\n", encoding="utf-8")
    output = [] if kind == "in training" else ["--softmax"]
    prior, model = ["--prior", str(texts / "grammar")], str(tmp_path / "model")
    pair = ["--source", str(tmp_path / "en"), "--target", str(tmp_path / "fr")]
    translate.main(["train", model, *prior, *pair, *SIZES, *output])
    asked = ["--source", str(texts / "some.en"), "--beam", "2", "--longest", "6", "--to", str(tmp_path / "out")]
    translate.main(["search", model, *prior, *asked, *(["--background", str(texts / "grammar")] if output else [])])
    lines = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3 and {*lines} <= {"le livre est petit .", "le livre est ."}
