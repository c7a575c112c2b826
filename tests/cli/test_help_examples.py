"""The examples in `llrnn SUB-COMMAND --help` are run, as a reader would paste them, in one folder."""

import json
import shutil
from pathlib import Path

import pytest
from shell import Result, Shell, run_script
from tiny_world import ADJECTIVES, ARTICLES, NOUNS, World
from translation_world import TranslationWorld

from fairseq_llrnn.cli import main as llrnn

# The tiny language has 51 words; training is left to a moment.
SHORTENED = {
    "llrnn prior ": "llrnn prior --top-words 20 ",
    "--optimizer adam": "--optimizer adam --max-update 1 --cpu --num-workers 0",
}


def write_treebank(path: Path) -> None:
    """Noun phrases of the tiny language in CoNLL-U."""
    rows = []
    for gender, nouns in NOUNS.items():
        for noun in nouns:
            words = [(ARTICLES[gender][0], "DET"), (noun, "NOUN"), (ADJECTIVES[gender][0], "ADJ")]
            rows += [f"{i}\t{word}\t{word}\t{tag}\t_\tGender={gender}\t0\troot\t_\t_" for i, (word, tag) in
                     enumerate(words, start=1)] + [""]  # fmt: skip
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_nbest(path: Path, targets: list[str]) -> None:
    """Two hypotheses a sentence: its translation, and that of the sentence before."""
    with path.open("w", encoding="utf-8") as file:
        for i, target in enumerate(targets):
            hypotheses = [{"text": text, "score": -1.0} for text in (targets[i - 1], target)]
            file.write(json.dumps({"id": i, "hypotheses": hypotheses}) + "\n")


@pytest.fixture(scope="module")
def folder(
    shell: Shell, world: World, translation: TranslationWorld, checkpoint: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:  # fmt: skip
    """What the examples speak of: the tiny language, and models of it that hardly learned anything."""
    place = tmp_path_factory.mktemp("examples")
    shutil.copytree(world.data, place / "data-bin", ignore=shutil.ignore_patterns("prior"))
    for name in ("train.txt", "test.txt", "lexicon.tsv"):
        shutil.copy(world.place / name, place)
    write_treebank(place / "train.conllu")
    shutil.copy(checkpoint, place / "checkpoint_best.pt")
    shell.run(
        "llrnn", "prior", "--lexicon", place / "lexicon.tsv", "--dict", world.data / "dict.txt", "--open-vocabulary",
        "characters", "--open-floor", 1, "--open-types", 1, "--count-text", place / "train.txt", "--top-words", 20,
        "--out", world.prior("of-examples"),
    )  # fmt: skip
    for name, arguments in {
        "open": world.train_args("of-examples", save_dir=place / "open"),
        "translation": translation.train_args(save_dir=place / "translation"),
    }.items():
        shell.run("fairseq-train", *arguments, "--max-epoch", 1)
        shutil.copy(place / name / "checkpoint_last.pt", place / f"{name}.pt")
    for name, split in {"dev": "valid", "test": "test"}.items():
        source, target = translation.source(split), world.text(split)
        (place / f"{name}.en").write_text("\n".join(source) + "\n", encoding="utf-8")
        (place / f"{name}.fr").write_text("\n".join(target) + "\n", encoding="utf-8")
        write_nbest(place / f"{name}.nbest", target)
    shutil.copy(world.place / "train.txt", place / "train.fr")
    return place


@pytest.mark.parametrize("name", llrnn.COMMANDS)
def test_examples_run(name: str, folder: Path) -> None:
    if name == "report":  # it looks at what the example of rescore makes
        for made in ("best.fr", "better.fr"):
            if not (folder / made).exists():
                shutil.copy(folder / "test.fr", folder / made)
    if name in ("show", "user-dir") and not (folder / "data-bin" / "prior").exists():
        paste(llrnn.load("prior").EXAMPLES[0], folder)
    for example in llrnn.load(name).EXAMPLES:
        assert "Traceback" not in paste(example, folder).err


def paste(example: str, folder: Path) -> Result:
    for long, short in SHORTENED.items():
        example = example.replace(long, short)
    return run_script("bash", "-euo", "pipefail", "-c", example, cwd=folder)
