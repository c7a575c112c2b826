"""A trained language model as a background, ours and fairseq's (plugin/models/frozen_lm.py)."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from shell import Shell
from tiny_world import MODEL, TRAINING, USER_DIR, World, read_checkpoint
from torch import Tensor

from fairseq_llrnn.backgrounds.language_model import ModelBackground
from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.plugin.compat.loading import RECORDED, Places
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading
from fairseq_llrnn.plugin.models.frozen_lm import find_model_files, load_general_model
from fairseq_llrnn.prior.model_files import ModelFiles
from fairseq_llrnn.testing import check_background

LONGEST = 12
STOCK = ("--task", "language_modeling", "--cpu", "--criterion", "cross_entropy", "--tokens-per-sample", LONGEST)
ARCHITECTURES: dict[str, tuple[object, ...]] = {
    "lstm_lm": ("--decoder-embed-dim", 8, "--decoder-hidden-size", 8, "--decoder-out-embed-dim", 8),
    "transformer_lm": (
        *("--decoder-embed-dim", 8, "--decoder-ffn-embed-dim", 8, "--decoder-layers", 1),
        *("--decoder-attention-heads", 2),
    ),
    "llrnn_lm": MODEL,
}


@pytest.fixture(scope="module")
def general(shell: Shell, world: World) -> dict[str, Path]:
    """Language models over a dictionary that says `chien` for `chat`, and lacks `mer`."""
    place = world.place / "general"
    place.mkdir()
    text = (world.place / "train.txt").read_text(encoding="utf-8").replace("chat", "chien").replace(" mer ", " lune ")
    (place / "train.txt").write_text(text.replace(" mer\n", " lune\n"), encoding="utf-8")
    data = place / "data-bin"
    shell.run(
        "fairseq-preprocess", "--only-source", "--trainpref", place / "train.txt", "--validpref", place / "train.txt",
        "--destdir", data, "--workers", 1,
    )  # fmt: skip
    features = ("--lexicon", world.place / "lexicon.tsv", "--top-words", 20)
    shell.run("llrnn", "prior", "--dict", data / "dict.txt", *features, "--out", data / "prior")
    ours = ("--task", "llrnn_language_modeling", "--cpu", "--user-dir", USER_DIR)
    for arch, sizes in ARCHITECTURES.items():
        kind = ours if arch == "llrnn_lm" else STOCK
        shell.run(
            "fairseq-train", data, "--arch", arch, *sizes, *TRAINING, *kind, "--save-dir", place / arch,
            "--no-epoch-checkpoints", "--max-update", 8,
        )  # fmt: skip
    return {arch: place / arch / "checkpoint_last.pt" for arch in ARCHITECTURES}


def kept(checkpoint: Path, place: Path, places: Places = RECORDED) -> ModelFiles:
    """The model's files as a prior in `place` holds them."""
    files = find_model_files(str(checkpoint), places)
    files.write(place)
    return ModelFiles.described(files.description(), place)


def own_words(world: World) -> tuple[tuple[str, ...], np.ndarray]:
    words = load_dictionary(world.data / "dict.txt")
    return words.symbols, words.predictable


def ids(symbols: tuple[str, ...], line: str) -> Tensor:
    return torch.tensor([[symbols.index(word) for word in ("</s>", *line.split())]])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_it_answers_as_fairseq_of_that_model(arch: str, general: dict[str, Path], world: World, tmp_path: Path) -> None:
    symbols, allowed = own_words(world)
    model = load_general_model(kept(general[arch], tmp_path), symbols, allowed)
    with safe_loading():  # fairseq's own models keep a Namespace, which torch alone refuses
        (alone,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(general[arch])])
    dictionary: Dictionary = task.source_dictionary
    # `chat` and `mer` are no words of the general model, which reads <unk>
    read = torch.tensor([[dictionary.index(word) for word in "</s> le chat voit la mer".split()]])
    with torch.no_grad():
        expected = alone.eval().get_normalized_probs(alone(read), log_probs=True)[0]  # shape: (6, G)
    found = model(ids(symbols, "le chat voit la mer"), last=False)[0]
    for word in ("voit", "le", "</s>"):
        torch.testing.assert_close(found[:, symbols.index(word)], expected[:, dictionary.index(word)])
    third = expected[:, dictionary.unk()] - np.log(3)
    for word in ("chat", "mer", "<unk>"):
        torch.testing.assert_close(found[:, symbols.index(word)], third)
    torch.testing.assert_close(model(ids(symbols, "le chat voit la mer"), last=True)[0, 0], found[-1])
    sums = found[:, torch.from_numpy(allowed)].exp().sum(1)
    dropped = expected[:, dictionary.index("chien")].exp()
    assert bool((sums + dropped < 1 + 1e-5).all())


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_as_a_background_it_obeys_the_laws(arch: str, general: dict[str, Path], world: World, tmp_path: Path) -> None:
    symbols, allowed = own_words(world)
    model = load_general_model(kept(general[arch], tmp_path), symbols, allowed)
    class_of = torch.arange(len(symbols)) % 7
    weights = torch.zeros(len(symbols)).masked_fill(~torch.from_numpy(allowed), float("-inf"))
    check_background(ModelBackground(class_of, 7, weights, symbols.index("</s>"), model))


def test_more_tokens_than_it_can_read(general: dict[str, Path], world: World, tmp_path: Path) -> None:
    symbols, allowed = own_words(world)
    model = load_general_model(kept(general["transformer_lm"], tmp_path), symbols, allowed)
    with pytest.raises(DataError, match=f"reads at most {LONGEST} tokens, found {LONGEST + 1} in a sentence"):
        model(ids(symbols, "la " * LONGEST), last=False)


# ---- what it refuses ------------------------------------------------------------------------------------------------


def changed(checkpoint: Path, place: Path, **options: object) -> Path:
    """A copy of a checkpoint, whose task has other options."""
    state = read_checkpoint(checkpoint)
    state["cfg"]["task"].update(options)
    torch.save(state, place)
    return place


def test_a_model_that_is_no_language_model(general: dict[str, Path], tmp_path: Path) -> None:
    path = changed(general["lstm_lm"], tmp_path / "translator.pt", _name="translation", task="translation")
    said = r"--background model:.*translator.pt: expected a language model of the task .* of task 'translation'"
    with pytest.raises(DataError, match=said):
        find_model_files(str(path), RECORDED)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("add_bos_token", True, "trained with --add-bos-token cannot"),
        ("self_target", True, "trained with --self-target cannot"),
        ("output_dictionary_size", 20, "trained with --output-dictionary-size cannot"),
    ],
)
def test_a_model_that_predicts_something_else(
    option: str, value: object, said: str, general: dict[str, Path], tmp_path: Path
) -> None:
    path = changed(general["lstm_lm"], tmp_path / "changed.pt", **{option: value})
    with pytest.raises(DataError, match=said):
        find_model_files(str(path), RECORDED)


def test_a_dictionary_that_is_no_text(general: dict[str, Path], world: World, tmp_path: Path) -> None:
    files = kept(general["llrnn_lm"], tmp_path)
    with files.paths["dict.txt"].open("ab") as file:
        file.write(b"\xff 1\n")
    with pytest.raises(PriorError, match="dict.txt.*expected UTF-8"):
        load_general_model(files, *own_words(world))
    files.paths["dict.txt"].write_bytes(gzip.compress(b"le 1\n"))
    with pytest.raises(PriorError, match="dict.txt: expected text, found a compressed file; unpack it"):
        load_general_model(files, *own_words(world))


def test_its_data_are_no_longer_there(general: dict[str, Path], world: World, tmp_path: Path) -> None:
    data = world.place / "general" / "data-bin"
    moved = tmp_path / "moved"
    shutil.copytree(data, moved)
    path = changed(general["llrnn_lm"], tmp_path / "changed.pt", data="nowhere")
    with pytest.raises(OptionError, match="name the folder with data of --background model"):
        find_model_files(str(path), Places(options="{} of --background model(…)"), 1.0)
    found = find_model_files(str(path), Places(data=str(moved), options="{} of --background model(…)"))
    assert found.identity == find_model_files(str(path), Places(data=str(data))).identity
