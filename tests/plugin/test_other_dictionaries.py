"""Models over other words than those of the data at hand, of the same number: refused where the data folder of their
training is still there to say so (plugin/compat/dictionaries.py)."""

import shutil
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from shell import Result, Shell, assert_says
from tiny_world import EVERY_SENTENCE, read_checkpoint
from tiny_world import TRAINING as TRAINING_LM
from translation_world import SIZES, TRAINING, TranslationWorld, train_stock_lm

STOCK = [
    "--task", "translation", "--cpu", "--arch", "transformer", *SIZES["llrnn_transformer"], *TRAINING, "--criterion",
    "cross_entropy", "--max-update", "1", "--disable-validation", "--no-epoch-checkpoints",
]  # fmt: skip

Generate = Callable[..., Result]


def permuted(dictionary: Path, place: Path) -> Path:
    """The same words, the first of them last."""
    first, *lines = dictionary.read_text(encoding="utf-8").splitlines()
    place.write_text("\n".join([*lines, first]) + "\n", encoding="utf-8")
    return place


def words(dictionary: Path) -> list[str]:
    return [line.split()[0] for line in dictionary.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def folders(shell: Shell, translation: TranslationWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data folders `src` and `tgt`, each with another order of the words of that language."""
    place = tmp_path_factory.mktemp("others")
    for side in ("src", "tgt"):
        files = {name: translation.data / f"dict.{name}.txt" for name in ("src", "tgt")}
        files[side] = permuted(files[side], place / f"{side}.txt")
        prefix = translation.place / "valid"
        shell.run(
            "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", prefix, "--validpref", prefix, "--srcdict",
            files["src"], "--tgtdict", files["tgt"], "--destdir", place / side,
        )  # fmt: skip
    return place


@pytest.fixture(scope="module")
def models(shell: Shell, translation: TranslationWorld, folders: Path) -> dict[str, Path]:
    """Ours and fairseq's of the ordinary data; fairseq's of others, whose training was not told the languages; and
    ours of other source words."""
    place = translation.place / "other-dictionaries"
    arguments = translation.train_args("llrnn_transformer", save_dir=place / "ours")
    shell.run("fairseq-train", *arguments, "--max-update", 1, "--disable-validation")
    arguments = translation.train_args("llrnn_transformer", save_dir=place / "ours of src")
    arguments[0] = str(folders / "src")
    shell.run("fairseq-train", *arguments, "--max-update", 1, "--disable-validation")
    for name, data in {"stock": translation.data, "src": folders / "src", "tgt": folders / "tgt"}.items():
        shell.run("fairseq-train", data, *STOCK, "--save-dir", place / name)
    return {path.parent.name: path for path in place.glob("*/checkpoint_last.pt")}


@pytest.fixture
def generate(shell: Shell, translation: TranslationWorld) -> Generate:
    def run(*paths: Path, options: tuple[object, ...] = (), code: int | None = 0, **given: Any) -> Result:
        return shell.run(
            "fairseq-generate", *translation.task_args(), "--path", ":".join(map(str, paths)), "--gen-subset", "test",
            "--score-reference", "--max-tokens", 400, "--num-workers", 0, *EVERY_SENTENCE, *options, code=code, **given,
        )  # fmt: skip

    return run


@pytest.fixture
def recorded(models: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """A copy of the model `tgt` that says something else of its data."""

    def run(**options: Any) -> Path:
        state = read_checkpoint(models["tgt"])
        state["cfg"]["task"].update(options)
        torch.save(state, tmp_path / "changed.pt")
        return tmp_path / "changed.pt"

    return run


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_other_words_are_refused(
    side: str, generate: Generate, models: dict[str, Path], folders: Path, translation: TranslationWorld
) -> None:
    name = f"dict.{side}.txt"
    found, expected = words(folders / side / name), words(translation.data / name)
    assert sorted(found) == sorted(expected)
    said = (
        f"{models[side]}: expected a model over the words of this data, found one that was trained with another "
        f"dictionary: {folders / side / name}, line 1 has {found[0]!r}, the data {expected[0]!r}; use models that "
        "were trained with the dictionaries of the data folder; if the model's dictionaries have moved, name their "
        "folder with --model-overrides \"{'data': 'DATA-BIN'}\""
    )
    for paths in ((models["ours"], models[side]), (models["stock"], models[side], models["ours"]), (models[side],)):
        assert_says(generate(*paths, code=None), said)


def test_other_words_of_the_source_are_refused_for_ours(generate: Generate, models: dict[str, Path]) -> None:
    """The prior knows those of the target only."""
    result = generate(models["ours of src"], code=None)
    assert_says(result, f"{models['ours of src']}: expected a model over the words", "dict.src.txt, line 1 has ")


def test_the_same_words_are_not(generate: Generate, models: dict[str, Path], tmp_path: Path) -> None:
    """Of one folder, of its copy, and of a checkpoint that is told where the dictionaries of its training are."""
    assert "P-0\t" in generate(models["ours"], models["stock"]).out
    copy = tmp_path / "copy"
    shutil.copytree(Path(read_checkpoint(models["stock"])["cfg"]["task"]["data"]), copy)
    state = read_checkpoint(models["stock"])
    state["cfg"]["task"]["data"] = str(copy)
    torch.save(state, tmp_path / "copied.pt")
    assert "P-0\t" in generate(models["ours"], tmp_path / "copied.pt").out
    told = generate(models["ours"], models["tgt"], options=("--model-overrides", str({"data": str(copy)})))
    assert "P-0\t" in told.out


def test_a_folder_beside_the_command(generate: Generate, folders: Path, recorded: Callable[..., Path]) -> None:
    """What the training called it is looked for from where the command runs."""
    path = recorded(data="tgt")
    assert_says(generate(path, code=None, cwd=folders), f"{path}: expected a model", ": tgt/dict.tgt.txt, line 1 has")
    assert "P-0\t" in generate(path, cwd=path.parent).out


def test_where_nothing_can_be_said(generate: Generate, recorded: Callable[..., Path], folders: Path) -> None:
    """The folder is gone, says no languages, or holds what is no dictionary; options that are none."""
    bare = folders / "bare"
    bare.mkdir(exist_ok=True)
    shutil.copy(folders / "tgt" / "dict.tgt.txt", bare)
    told = {"source_lang": "src", "target_lang": "tgt"}
    (bare / "dict.src.txt").write_bytes(b"\xff\xfe no dictionary\n")
    for options in ({"data": str(bare)}, {"data": "a\0b"}, {"data": None}):
        assert "P-0\t" in generate(recorded(**options)).out
    path = recorded(data=str(bare), **told)
    assert_says(generate(path, code=None), f"{bare}/dict.tgt.txt, line 1")
    (bare / "dict.tgt.txt").write_text("no\n" * 40, encoding="utf-8")
    assert "P-0\t" in generate(path).out
    (bare / "dict.tgt.txt").write_text("one 1\n", encoding="utf-8")  # of another size: not the one of the training
    assert "P-0\t" in generate(path).out


def test_an_older_checkpoint(generate: Generate, models: dict[str, Path], tmp_path: Path) -> None:
    """With its options in one namespace."""
    state = read_checkpoint(models["tgt"])
    options: dict[str, Any] = {}
    for part in state["cfg"].values():
        options |= vars(part) if isinstance(part, Namespace) else part if isinstance(part, dict) else {}
    options = {name: value for name, value in options.items() if name not in ("_name", "post_process")}
    state["args"] = Namespace(**options | {"arch": "transformer", "task": "translation", "criterion": "cross_entropy"})
    state["cfg"] = None
    torch.save(state, tmp_path / "older.pt")
    assert_says(generate(tmp_path / "older.pt", code=None), f"{tmp_path}/older.pt: expected a model over the words")


def test_language_models(shell: Shell, translation: TranslationWorld, tmp_path: Path) -> None:
    world = translation.world
    other = permuted(world.data / "dict.txt", tmp_path / "dict.txt")
    shell.run(
        "fairseq-preprocess", "--only-source", "--trainpref", world.place / "valid.txt", "--srcdict", other,
        "--destdir", tmp_path / "data",
    )  # fmt: skip
    options = ("--cpu", "--user-dir", str(Path(__file__).parents[2] / "fairseq_llrnn"))
    ours = ("--task", "llrnn_language_modeling", "--prior", world.prior("prior"))
    for data in (tmp_path / "data", world.data):
        more = ("--user-dir", options[-1], *TRAINING_LM, "--criterion", "cross_entropy", "--disable-validation")
        path = train_stock_lm(shell, data, tmp_path, *more)
        result = shell.run(
            "fairseq-eval-lm", world.data, *options, *ours, "--path", path, "--max-tokens", 400, "--gen-subset",
            "valid", "--sample-break-mode", "eos", code=None,
        )  # fmt: skip
        if data == world.data:
            assert result.code == 0, result.err
        else:
            first = words(world.data / "dict.txt")[0]
            assert_says(result, f"{path}: expected a model", f"{data}/dict.txt, line 1 has ", f", the data {first!r};")
        path.unlink()
