"""`llrnn` in this process on a very small corpus, and once a session a trained model to explain."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from llrnn_command import checkpoint as checkpoint
from llrnn_command import llrnn as llrnn
from nbest_lists import Write
from shell import Shell
from small_corpus import Build, Change, Corpus, Done, Explain, Llrnn
from translation_world import TranslationWorld, stock_args

from fairseq_llrnn.prior.prior import Prior


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.make(tmp_path)


@pytest.fixture
def build(corpus: Corpus, llrnn: Llrnn) -> Build:
    """Run `llrnn prior` on the small corpus; later options win."""

    def run(*options: object) -> Done:
        return llrnn(
            "prior", "--dict", corpus.dictionary, "--conllu", corpus.treebank, "--top-words", 3, "--out", corpus.out,
            "--set", "words.guess=off", *options,
        )  # fmt: skip

    return run


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
def explain(shell: Shell, checkpoint: Path) -> Explain:
    """Run `llrnn explain --path checkpoint …`; another --path wins."""

    def run(*arguments: object, stdin: str = "", path: Path = checkpoint) -> Done:
        done = shell.run("llrnn", "explain", "--path", path, *arguments, stdin=stdin, code=None)
        return Done(done.code, done.out, done.err)

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


@pytest.fixture
def evidence_model(evidence_models: dict[str, Path]) -> Path:
    """A translation model, with the prior `lexical` of the world of evidence."""
    return evidence_models["lexical"]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file in this test's folder: its name, its text."""

    def run(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return run


@pytest.fixture(scope="session")
def forward(shell: Shell, translation: TranslationWorld) -> Path:
    """Our translation model."""
    place = translation.place / "rescoring-forward"
    shell.run("fairseq-train", *translation.train_args(save_dir=place), "--max-epoch", 4)
    return place / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def reverse(shell: Shell, translation: TranslationWorld) -> Path:
    """A softmax Transformer of fairseq, the other way round, that takes at most nine words."""
    place = translation.place / "rescoring-reverse"
    limits = ("--max-target-positions", 10, "--max-source-positions", 10)
    shell.run(
        "fairseq-train", *stock_args(translation.data, place), "--source-lang", "tgt", "--target-lang", "src",
        "--lr", 0.003, "--max-epoch", 2, *limits,
    )  # fmt: skip
    return place / "checkpoint_last.pt"
