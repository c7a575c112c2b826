"""The examples in `llrnn SUB-COMMAND --help` are parsed, and in `make test-all` run, as a reader would paste them.

They speak of the files that README.md and the guides make.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from guide_pages import command_lines
from labels_world import make_labels_world
from shell import Result, Shell, run_script
from tiny_world import ADJECTIVES, ARTICLES, NOUNS, World
from translation_world import TranslationWorld

from fairseq_llrnn.cli import main as llrnn
from fairseq_llrnn.registry import lost

# The tiny language has 51 words; training is left to a moment; of Albanian, the package has a tenth of the Czech forms.
SHORTENED = {
    "llrnn prior ": "llrnn prior --top-words 20 ", "--max-epoch 30": "--max-update 1 --cpu --num-workers 0",
    "--language cs": "--language sq",
}  # fmt: skip


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
    for name in ("train.txt", "valid.txt", "test.txt", "lexicon.tsv"):
        shutil.copy(world.place / name, place)
    write_treebank(place / "train.conllu")
    (place / "checkpoints").mkdir()
    shutil.copy(checkpoint, place / "checkpoints" / "checkpoint_best.pt")
    shell.run(
        "llrnn", "prior", "--lexicon", place / "lexicon.tsv", "--dict", world.data / "dict.txt", "--open-vocabulary",
        "characters", "--set", "open_vocabulary.floor=1", "open_vocabulary.types=1", "--count-text",
        place / "train.txt",
        "--top-words", 20,
        "--out", world.prior("of-examples"),
    )  # fmt: skip
    for arguments in (
        world.train_args("of-examples", save_dir=place / "open"),
        translation.train_args(save_dir=place / "translator"),
        [*world.train_args(save_dir=place / "with-a-tree"), "--output-tree", "clusters"],
    ):
        if not any(lost(str(word)) for word in arguments):  # else no example speaks of it
            shell.run("fairseq-train", *arguments, "--max-epoch", 1)
    if "classify" in NAMES:
        labels = make_labels_world(tmp_path_factory.mktemp("labels"), shell)
        shell.run("fairseq-train", *labels.train_args(save_dir=place / "labels"), "--max-epoch", 1)
        for name in ("test.text", "test.labels"):
            shutil.copy(labels.place / name, place / name)
    (place / "labelled.tsv").write_text("how much salt ?\tfood\n", encoding="utf-8")
    for name in ("valid", "test"):
        source, target = translation.source(name), world.text(name)
        (place / f"{name}.en").write_text("\n".join(source) + "\n", encoding="utf-8")
        (place / f"{name}.fr").write_text("\n".join(target) + "\n", encoding="utf-8")
        write_nbest(place / f"{name}.nbest", target)
    shutil.copy(world.place / "train.txt", place / "train.fr")
    shutil.copy(translation.place / "train.src", place / "train.en")
    return place


# These have pages of their own, and examples that read what those make.
ELSEWHERE = ("discourse", "encode", "mrf")
NAMES = [name for name in llrnn.all_commands() if name.split()[0] not in ELSEWHERE]


@pytest.fixture(scope="module")
def commands(beside_fairseq: Shell) -> dict[str, str]:
    """Every sub-command of `llrnn` imports what it needs of ours."""
    return beside_fairseq.for_scripts()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str, folder: Path, commands: dict[str, str]) -> None:
    if name == "report":  # it looks at what the example of rescore makes
        for made in ("best.fr", "better.fr"):
            if not (folder / made).exists():
                shutil.copy(folder / "test.fr", folder / made)
    if name in ("show", "train", "user-dir") and not (folder / "data-bin" / "prior").exists():
        paste(llrnn.load("prior").EXAMPLES[0], folder, commands)
    if name in ("phrases cover", "phrases score") and not (folder / "phrase-table.gz").exists():
        paste(llrnn.load("phrases extract").EXAMPLES[0], folder, commands)
    if name == "rare-words restore" and not (folder / "annotated").exists():
        paste(llrnn.load("rare-words annotate").EXAMPLES[0], folder, commands)
    for example in llrnn.load(name).EXAMPLES:
        assert "Traceback" not in paste(example, folder, commands).err


@pytest.mark.parametrize("name", NAMES)
def test_examples_can_be_pasted_after_the_first_steps(name: str, root: Path) -> None:
    """Nothing is to be filled in, and every file is one of those that a page makes, or an example."""
    pages = [root / "README.md", *(root / "docs" / "guides").glob("*.md")]
    known = "".join(page.read_text(encoding="utf-8") for page in pages)
    examples = "\n".join(example for other in NAMES for example in llrnn.load(other).EXAMPLES)
    made = re.findall(r"(?:--out|>|--save-dir) (\S+)", examples)
    for example in llrnn.load(name).EXAMPLES:
        assert not re.search(r"…|\.\.\.|\n|#|<[a-zA-Z]|\bFILE\b|\bDIR\b", example)
        for words in command_lines(example):
            called = next((one for one in (" ".join(words[1:3]), words[1]) if one in llrnn.all_commands()), "train")
            if words[0] == "llrnn" and called not in llrnn.FAIRSEQ:
                llrnn.Parser(llrnn.load(called)).parse_intermixed_args(words[1 + len(called.split()) :])
        for word in example.replace("=", " ").split():
            if re.fullmatch(r"[\w-]+([./][\w-]+)+", word) and not re.fullmatch(r"[\d./]+", word):
                assert word in made or word.replace(".nbest", ".en") in known, word


def paste(example: str, folder: Path, commands: Mapping[str, str]) -> Result:
    for long, short in SHORTENED.items():
        example = example.replace(long, short)
    return run_script("bash", "-euo", "pipefail", "-c", example, cwd=folder, variables=commands)
