"""`llrnn prior --copy-source-words` through fairseq's commands: no word that neither the list nor the source has."""

import math
import random
import re
from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import USER_DIR, World, build, randomise
from translation_world import SIZES, TRAINING, assert_steps_agree, source_of

from fairseq_llrnn.backgrounds.copied_words import CopiedWords
from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.prior.parts import CopiedWordsPart
from fairseq_llrnn.prior.prior import Prior

LISTED = "le la chat mer voit roi".split()


def spelled(line: str) -> str:
    return " ".join("▁" if c == " " else c for c in line)


def sentences(many: int, rng: random.Random) -> list[str]:
    """Listed words, and a name that no list has."""
    names = ("".join(rng.choices("acehilmortv", k=rng.randint(3, 5))) for _ in range(many))
    return [f"{' '.join(rng.choices(LISTED, k=3))} {name}" for name in names]


@pytest.fixture(scope="module")
def place(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names stand in the source as they are, all other words backwards."""
    folder, rng = tmp_path_factory.mktemp("spelled"), random.Random(3)
    for split, many in (("train", 60), ("valid", 8), ("test", 8)):
        lines = sentences(many, rng)
        sources = [f"{source_of(' '.join(line.split()[:3]))} {line.split()[3]}" for line in lines]
        for side, texts in (("tgt", lines), ("src", sources)):
            (folder / f"{split}.{side}").write_text("".join(spelled(t) + "\n" for t in texts), encoding="utf-8")
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", folder / "train", "--validpref",
        folder / "valid", "--testpref", folder / "test", "--destdir", folder / "data",
    )  # fmt: skip
    (folder / "listed.words").write_text("\n".join(LISTED), encoding="utf-8")
    return folder


def make_prior(shell: Shell, place: Path, name: str, *options: object, code: int | None = 0) -> str:
    common = ("--dict", place / "data" / "dict.tgt.txt", "--top-words", "all", "--count-text", place / "train.tgt")
    listed = ("--background", f"automaton:{place / 'listed.words'}")
    return shell.run("llrnn", "prior", *common, *listed, *options, "--out", place / name, code=code).err


def train_args(place: Path, prior: str, *options: object) -> list[str]:
    task = (place / "data", "--user-dir", USER_DIR, "--task", "llrnn_translation", "--prior", place / prior)
    sides = ("--source-lang", "src", "--target-lang", "tgt", "--cpu", "--arch", "llrnn_lstm")
    return [str(part) for part in (*task, *sides, *SIZES["llrnn_lstm"], *TRAINING, "--max-tokens", 600, *options)]


def test_trained_and_generated(shell: Shell, place: Path) -> None:
    assert "probability zero" in make_prior(shell, place, "strict", code=2), "without copies no name can be said"
    make_prior(shell, place, "prior", "--copy-source-words")
    training = train_args(place, "prior", "--save-dir", place / "model", "--no-epoch-checkpoints")
    nats = shell.run("fairseq-train", *training, "--max-epoch", 3).json_lines("valid")[-1]["valid_nats"]
    assert nats < math.log(8)
    search = (*training[:9], "--cpu", "--path", place / "model" / "checkpoint_last.pt", "--beam", 3)
    limits = (("--max-len-a", 0, "--max-len-b", 5), ("--max-len-b", 40))
    sources = [line.replace(" ", "").split("▁") for line in (place / "test.src").read_text("utf-8").splitlines()]
    for limit in limits:
        found = shell.run("fairseq-generate", *search, *limit).out
        hypotheses = re.findall(r"^H-(\d+)\t\S+\t(.*)$", found, re.MULTILINE)
        assert len(hypotheses) == len(sources)
        for number, text in hypotheses:
            words = {word for word in text.replace(" ", "").split("▁") if word}
            assert words and words <= {*LISTED, *sources[int(number)]}


def test_steps_agree(shell: Shell, place: Path) -> None:
    from fairseq.data import LanguagePairDataset

    make_prior(shell, place, "steps", "--copy-source-words")
    setting = build([*train_args(place, "steps"), "--no-save"])
    randomise(setting.model, scale=0.3)
    setting.model.eval()
    assert isinstance(setting.model.decoder.head.background, CopiedWords)
    sides = []
    for dictionary, side in ((setting.task.source_dictionary, "src"), (setting.task.target_dictionary, "tgt")):
        lines = (place / f"test.{side}").read_text("utf-8").splitlines()[:4]
        sides.append([dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines])
    data = LanguagePairDataset(
        sides[0], [len(x) for x in sides[0]], setting.task.source_dictionary, sides[1], [len(x) for x in sides[1]],
        setting.task.target_dictionary, left_pad_source=True, left_pad_target=False,
    )  # fmt: skip
    sample = data.collater([data[i] for i in range(4)])
    assert_steps_agree(setting, sample)
    loss, _, _ = setting.criterion(setting.model, sample)
    assert torch.isfinite(loss)


def test_a_training_sentence_with_a_word_of_neither(shell: Shell, place: Path, tmp_path: Path) -> None:
    make_prior(shell, place, "prior-neither", "--copy-source-words")
    (place / "neither.src").write_text(spelled("el tahc") + "\n", encoding="utf-8")
    (place / "neither.tgt").write_text(spelled("le taho") + "\n", encoding="utf-8")
    dictionaries = [("--srcdict", place / "data" / "dict.src.txt"), ("--tgtdict", place / "data" / "dict.tgt.txt")]
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", place / "neither", "--validpref",
        place / "valid", *dictionaries[0], *dictionaries[1], "--destdir", tmp_path / "data",
    )  # fmt: skip
    args = [tmp_path / "data", *train_args(place, "prior-neither", "--no-save")[1:], "--max-epoch", 1]
    done = shell.run("fairseq-train", *args, code=None)
    assert done.code != 0 and "at position 7 of sample 1" in done.err and "Traceback" not in done.err


def test_options_and_priors_that_do_not_go_together(shell: Shell, place: Path, world: World) -> None:
    for options, message in (
        (("--copy-source-words", "--evidence", "copies"), "--evidence: evidence is of whole words, and --copy-source"),
        (("--source-dict", place / "data" / "dict.src.txt"), "--source-dict: it needs --evidence or"),
        (("--copy-source-words", "--background", "ngram:2"), "--copy-source-words: it needs --background"),
    ):
        assert message in make_prior(shell, place, "wrong", *options, code=2)
    regex = place / "some.regex"
    regex.write_text('"l" "e"', encoding="utf-8")
    found = make_prior(shell, place, "wrong", "--copy-source-words", "--background", f"automaton:{regex}", code=2)
    assert "--copy-source-words: it needs --background automaton:FILE.words" in found
    alone = place / "alone" / "dict.txt"
    alone.parent.mkdir()
    alone.write_bytes((place / "data" / "dict.tgt.txt").read_bytes())
    found = make_prior(shell, place, "wrong", "--copy-source-words", "--dict", alone, code=2)
    assert f"--copy-source-words: expected one other dict.*.txt beside --dict {alone}, the source's, found n" in found
    assert not (place / "wrong").exists()
    make_prior(shell, place, "checked", "--copy-source-words")
    make_prior(shell, place, "without", "--on-zero", "skip")
    prior = Prior.load(place / "checked")
    with pytest.raises(PriorError, match="prior's words to copy were made for another source dictionary than there"):
        prior.check_source_dictionary(prior.source_symbols[:-1], "there")
    assert prior.find(CopiedWordsPart) is not None and prior.fingerprint != Prior.load(place / "without").fingerprint
