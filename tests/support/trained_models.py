"""Models trained in the tiny worlds: fixtures of a session, which conftest.py imports, so that it has each once."""

from pathlib import Path

import pytest
from built_once import own_copy
from evidence_world import EvidenceWorld
from shell import Shell
from tiny_world import World
from translation_world import TranslationWorld, stock_args


@pytest.fixture(scope="session")
def trained(shell: Shell, world: World) -> Path:
    """The folder of a model that fairseq-train trained for three epochs: checkpoint_best.pt and checkpoint_last.pt."""
    place = world.place / "trained"
    shell.run("fairseq-train", *world.train_args(save_dir=place), "--max-epoch", 3)
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
def evidence_models(
    shell: Shell, evidence: EvidenceWorld, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Checkpoints: three of ours with evidence, `lexical` with translations, and fairseq's own Transformer."""

    def train(place: Path) -> None:
        lstm = evidence.train_args(save_dir=place / "lstm")
        transformer = evidence.train_args("llrnn_transformer", save_dir=place / "transformer")
        lexical = evidence.train_args("llrnn_transformer", "lexical", save_dir=place / "lexical")
        stock = stock_args(evidence.data, place / "stock")
        for arguments, epochs in ((lstm, 6), (transformer, 8), (lexical, 8), (stock, 2)):
            once = ["--max-epoch", epochs, "--save-interval", epochs, "--disable-validation"]
            shell.run("fairseq-train", *arguments, *once)

    place = own_copy(tmp_path_factory, "evidence-models", train)
    return {name: place / name / "checkpoint_last.pt" for name in ("lstm", "transformer", "lexical", "stock")}
