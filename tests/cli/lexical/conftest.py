"""Folders of fairseq-preprocess with a small bitext, and `llrnn prior` on them."""

import shutil
from functools import partial
from pathlib import Path

import pytest
from shell import Shell
from small_bitext import ENGLISH, FRENCH, Run, preprocess
from small_corpus import Llrnn


@pytest.fixture(scope="session")
def made(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data-bin: en-fr, and joined: the same with one dictionary."""
    place = tmp_path_factory.mktemp("bitext")
    preprocess(shell, place / "data-bin", ENGLISH * 5, FRENCH * 5)
    preprocess(shell, place / "joined", ENGLISH * 5, FRENCH * 5, "--joined-dictionary")
    return place


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(made / "data-bin", tmp_path / "data-bin"))


@pytest.fixture
def prior(data: Path, llrnn: Llrnn) -> Run:
    """Run `llrnn prior` with the bitext and IBM Model 1; later options win."""
    return partial(
        llrnn, "prior", "--dict", data / "dict.fr.txt", "--top-words", 3, "--lexical-translation", data, "--set",
        "translations.aligner=ibm1", "--out", data / "prior",
    )  # fmt: skip
