"""`llrnn` in this process on a very small corpus, and once a session a trained model to explain."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from llrnn_command import as_typed as as_typed
from llrnn_command import checkpoint as checkpoint
from llrnn_command import evidence_model as evidence_model
from llrnn_command import llrnn as llrnn
from small_corpus import Build, Change, Corpus, Done, Explain, Llrnn

from fairseq_llrnn.prior.prior import Prior


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.make(tmp_path)


@pytest.fixture
def build(corpus: Corpus, llrnn: Llrnn) -> Build:
    """Run `llrnn prior` on the small corpus; later options win."""
    return partial(
        llrnn, "prior", "--dict", corpus.dictionary, "--conllu", corpus.treebank, "--top-words", 3, "--out", corpus.out,
        "--set", "words.guess=off",
    )  # fmt: skip


@pytest.fixture
def prior(build: Build) -> Build:
    """The run of `llrnn prior` that `built` loads; a module's own one takes its place, or its own `build` does."""
    return build


@pytest.fixture
def data(corpus: Corpus) -> Path:
    """The folder in which `prior` leaves one."""
    return corpus.place


@pytest.fixture
def built(prior: Llrnn, data: Path) -> Callable[..., Prior]:
    """Run `prior`, and load what was written."""

    def run(*options: object) -> Prior:
        done = prior(*options)
        assert done.code == 0, done.err
        return Prior.load(data / "prior")

    return run


@pytest.fixture
def explain(as_typed: Llrnn, checkpoint: Path) -> Explain:
    """Run `llrnn explain --path checkpoint …`; another --path wins."""

    def run(*arguments: object, stdin: str = "", path: Path = checkpoint) -> Done:
        return as_typed("explain", "--path", path, *arguments, stdin=stdin, code=None)

    return run


@pytest.fixture
def changed(checkpoint: Path, tmp_path: Path) -> Change:
    """A copy of the checkpoint in which something was changed."""

    def run(change: Callable[[dict[str, Any]], None]) -> Path:
        state = torch.load(checkpoint, weights_only=True)
        change(state)
        path = tmp_path / "changed.pt"
        torch.save(state, path)
        return path

    return run
