"""Training data in several folders, `data-bin1:data-bin2`, with one prior: an epoch reads one of them, in turn."""

import shutil
from pathlib import Path

import pytest
from evidence_world import EvidenceWorld, bitext_folders
from same_training import assert_same_training
from shell import Shell, assert_says
from tiny_world import EVERY_SENTENCE, World, build, read_checkpoint

from fairseq_llrnn.errors import DataError


@pytest.fixture(scope="module")
def folders(shell: Shell, world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The training text in two folders; the first one has the prior and the validation text."""
    place = tmp_path_factory.mktemp("shards")
    lines = world.text("train")
    for number, part in enumerate((lines[:70], lines[70:]), start=1):
        (place / "text").write_text("\n".join(part) + "\n", encoding="utf-8")
        validation = ["--validpref", world.place / "valid.txt"] if number == 1 else []
        shell.run(
            "fairseq-preprocess", "--only-source", "--srcdict", world.data / "dict.txt", "--trainpref", place / "text",
            *validation, "--destdir", place / f"data-bin{number}",
        )  # fmt: skip
    shutil.copytree(world.prior("prior"), place / "data-bin1" / "prior")
    return f"{place}/data-bin1:{place}/data-bin2"


def arguments(world: World, folders: str, *options: object) -> list[object]:
    _, *rest = world.train_args()
    rest[rest.index("--prior") : rest.index("--prior") + 2] = []  # that of the first folder
    return [folders, *rest, *options]


def test_an_epoch_reads_one_folder(world: World, folders: str) -> None:
    task = build(arguments(world, folders)).task
    found = []
    for epoch in (1, 2, 3):
        task.load_dataset("train", epoch=epoch, combine=True)
        data = task.dataset("train")
        found.append([task.dictionary.string(data[i]["target"]) for i in range(len(data))])
    assert found == [world.text("train")[:70], world.text("train")[70:], world.text("train")[:70]]


def test_with_evidence(shell: Shell, evidence: EvidenceWorld, tmp_path: Path) -> None:
    """Training puts unknown words into every folder's sentences."""
    folders = bitext_folders(shell, evidence, tmp_path)
    _, *rest = evidence.train_args(prior="lexical")
    task = build([folders, *rest]).task
    sizes = []
    for epoch in (1, 2):
        task.load_dataset("train", epoch=epoch, combine=True)
        data = task.dataset("train")
        assert type(data.dataset).__name__ == "WithSlots"
        assert type(data.dataset.dataset).__name__ == "InventedEvidence"
        sizes.append(len(data))
    assert sizes == [len(evidence.text("train", "src")), 9]


def test_stopped_in_the_second_folder_and_resumed(shell: Shell, world: World, folders: str, tmp_path: Path) -> None:
    def train(name: str, *options: object) -> Path:
        saved = ["--save-dir", tmp_path / name, "--no-epoch-checkpoints", "--max-epoch", 2, "--max-tokens", 70]
        options = tuple(option for option in (*saved, *options, *EVERY_SENTENCE))
        given = [part for part in arguments(world, folders, *options) if part != "--no-save"]
        shell.run("fairseq-train", *given)
        return tmp_path / name / "checkpoint_last.pt"

    whole = train("whole", "--dropout", 0.1)
    stopped = read_checkpoint(train("parts", "--dropout", 0.1, "--max-update", 10))["extra_state"]["train_iterator"]
    assert stopped["epoch"] == 2 and stopped["iterations_in_epoch"] > 1
    assert_same_training(train("parts", "--dropout", 0.1), whole)


def test_folders_that_do_not_belong_together(shell: Shell, world: World, folders: str, tmp_path: Path) -> None:
    first, second = folders.split(":")
    with pytest.raises(DataError, match=r"third: expected one of the data folders .*, found no such folder"):
        build(arguments(world, f"{folders}:{tmp_path}/third"))
    other = tmp_path / "other"
    shutil.copytree(second, other)
    words = (other / "dict.txt").read_text(encoding="utf-8").splitlines()
    (other / "dict.txt").write_text("\n".join(words[::-1]) + "\n", encoding="utf-8")
    found = shell.run("fairseq-train", *arguments(world, f"{first}:{other}"), code=1)
    assert_says(found, f"{other}/dict.txt: expected the words of {first}/dict.txt", "--srcdict")


def test_a_first_folder_that_is_none(world: World, tmp_path: Path) -> None:
    """The commonest slip; fairseq looked for its files with a stack trace."""
    _, *rest = world.train_args()
    with pytest.raises(DataError, match="folder of fairseq-preprocess, found no such folder; check its name"):
        build([tmp_path / "nowhere", *rest])
