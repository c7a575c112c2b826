"""Models trained in the tiny worlds: fixtures of a session, which conftest.py imports, so that it has each once."""

from pathlib import Path

import pytest
from evidence_world import EvidenceWorld
from shell import Shell
from tiny_world import World
from translation_world import TranslationWorld, stock_args


@pytest.fixture(scope="session")
def trained(shell: Shell, world: World) -> Path:
    """The folder of a model that fairseq-train trained for two epochs: checkpoint_best.pt and checkpoint_last.pt."""
    place = world.place / "trained"
    shell.run("fairseq-train", *world.train_args(save_dir=place), "--max-epoch", 2)
    return place


@pytest.fixture(scope="session")
def source_prior(shell: Shell, translation: TranslationWorld) -> Path:
    """Of the source's words, in a folder of its own: suffixes, and an identity for the most frequent ones."""
    place = translation.place / "source-prior"
    shell.run(
        "llrnn", "prior", "--dict", translation.data / "dict.src.txt", "--suffixes", 2, "--shapes", "--top-words", 5,
        "--out", place,
    )  # fmt: skip
    return place


@pytest.fixture(scope="session")
def evidence_models(shell: Shell, evidence: EvidenceWorld) -> dict[str, Path]:
    """Checkpoints: two of ours with evidence, and one of fairseq's own Transformer over the same dictionaries."""
    places = {name: evidence.place / name for name in ("lstm", "transformer", "stock")}
    shell.run("fairseq-train", *evidence.train_args(save_dir=places["lstm"]), "--max-epoch", 6)
    arguments = evidence.train_args("llrnn_transformer", save_dir=places["transformer"])
    shell.run("fairseq-train", *arguments, "--lr", 0.005, "--max-epoch", 12)
    shell.run("fairseq-train", *stock_args(evidence.data, places["stock"]), "--max-epoch", 2)
    return {name: place / "checkpoint_last.pt" for name, place in places.items()}
