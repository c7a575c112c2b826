"""Priors and models that v0.2.0-rc1 made (tests/stored): they load, are the same, and score as they did there."""

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_corpus import Llrnn
from stored_priors import ARCHIVE, facts, texts_of, unpack

import fairseq_llrnn
from fairseq_llrnn.plugin.models.frozen_lm import load_general_model
from fairseq_llrnn.prior.prior import Prior

CLOSE = {"rel": 1e-5, "abs": 1e-5}  # of numbers that float32 rounds
PRIORS = (
    "cache evidence field grammar guessed labels lemmas lexical mixture model ngram novel open pieces placed product "
    "smoothed softmax spelled static terms unigram weights"
).split()
MODELS = (
    "lbl lm lm-characters lm-mixture lm-product lm-spelled lm-tree lstm encoder-decoder rctm rnnsearch transformer "
    "transformer-pieces transformer-terms"
).split()
CLASSIFIERS = ["bag", "classifier"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stored")


@pytest.fixture(scope="module")
def recorded(place: Path) -> dict[str, dict[str, Any]]:
    return unpack(place)


@pytest.fixture(autouse=True)
def _there(recorded: object, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The models recorded their folders relative to this one."""
    monkeypatch.chdir(place)


def test_the_archive_is_small_and_all_of_it_is_compared(recorded: dict[str, dict[str, Any]]) -> None:
    assert ARCHIVE.stat().st_size < 600_000
    assert sorted(recorded["priors"]) == sorted(PRIORS)
    assert sorted(recorded["models"]) == sorted([*MODELS, *CLASSIFIERS, "discourse"])


@pytest.mark.parametrize("name", PRIORS)
def test_a_prior_is_what_it_was(name: str, recorded: dict[str, dict[str, Any]], place: Path, tmp_path: Path) -> None:
    folder = place / "priors" / name
    prior = Prior.load(folder, load_general_model)
    expected = recorded["priors"][name]
    found = facts(prior, *texts_of(name, place))
    assert found["fingerprint"] == expected["fingerprint"] and found["counts"] == expected["counts"]
    for loss, was in zip(found["losses"], expected["losses"], strict=True):
        assert loss == (None if was is None else pytest.approx(was, **CLOSE))
    prior.save(tmp_path / "again")
    for file in ("prior.json", "arrays.npz", "dictionary.txt"):
        assert (tmp_path / "again" / file).read_bytes() == (folder / file).read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_scores_as_it_did(name: str, recorded: dict[str, dict[str, Any]], place: Path) -> None:
    model = fairseq_llrnn.load(f"models/{name}/checkpoint_last.pt")
    lines, sources = texts_of(name, place)
    source = sources if model.translates else None
    rows = model.surprisals(lines, source=source, unit="nats", is_open=model.has_open_vocabulary)
    sums = [sum(row.surprisal for row in rows if row.sentence == i) for i in range(1, len(lines) + 1)]
    assert sums == pytest.approx(recorded["models"][name], **CLOSE)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_names_the_labels_that_it_did(
    name: str, recorded: dict[str, dict[str, Any]], place: Path, monkeypatch: pytest.MonkeyPatch, llrnn: Llrnn,
) -> None:  # fmt: skip
    texts = io.BytesIO(("\n".join(texts_of(name, place)[1]) + "\n").encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(texts))
    done = llrnn("classify", "--path", f"models/{name}/checkpoint_last.pt", "-k", 3)
    assert done.out == recorded["models"][name], done.err


def test_an_encoder_gives_the_vectors_that_it_did(
    recorded: dict[str, dict[str, Any]], place: Path, tmp_path: Path, llrnn: Llrnn
) -> None:
    (tmp_path / "texts").write_text("\n".join(texts_of("discourse", place)[0]) + "\n", encoding="utf-8")
    out = tmp_path / "vectors.npy"
    done = llrnn("encode", "--path", "models/discourse/checkpoint_last.pt", "--out", out, tmp_path / "texts")
    assert done.code == 0, done.err
    assert np.load(out).tolist() == [pytest.approx(row, **CLOSE) for row in recorded["models"]["discourse"]]
