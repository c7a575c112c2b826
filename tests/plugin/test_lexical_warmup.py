"""--lexical-warmup-updates: training begins without the lexical translations; nothing but training knows of it."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from dynamic_prior import LINES
from evidence_world import EvidenceWorld
from shell import Shell
from tiny_world import build
from translation_world import TranslationWorld, assert_resumed_is_never_stopped, pairs

from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.compat.loading import read_checkpoint

ARCHITECTURES = ["llrnn_lstm", "llrnn_transformer"]


def lexicon_of(model: Any) -> LexicalBackground:
    (found,) = (part for part in model.modules() if isinstance(part, LexicalBackground))
    return found


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_share_of_hidden_sentences_falls_to_nothing(translation: TranslationWorld, arch: str) -> None:
    setting = build([*translation.train_args(arch, "lexical"), "--lexical-warmup-updates", "40"])
    shares = []
    for update in (0, 10, 40, 41, 1000):
        setting.model.set_num_updates(update)  # as fairseq's trainer does, before every update
        shares.append(lexicon_of(setting.model).hidden_share)
    assert shares == [1.0, 0.75, 0.0, 0.0, 0.0]


def test_below_evidence_as_well(evidence: EvidenceWorld) -> None:
    setting = build([*evidence.train_args("llrnn_transformer", "lexical"), "--lexical-warmup-updates", "40"])
    setting.model.set_num_updates(20)
    assert lexicon_of(setting.model).hidden_share == 0.5


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_only_training_sees_less(translation: TranslationWorld, arch: str) -> None:
    """Hidden, a model in training is one without translations; in evaluation it is the same with and without."""
    plain = build([*translation.train_args(arch, "lexical")])
    warm = build([*translation.train_args(arch, "lexical"), "--lexical-warmup-updates", "40"])
    warm.model.load_state_dict(plain.model.state_dict())
    warm.model.set_num_updates(0)
    sample = pairs(plain.task, LINES)
    losses = {}
    for name, setting in (("plain", plain), ("warm", warm)):
        for mode in (True, False):
            torch.manual_seed(0)
            loss, _, _ = setting.criterion(setting.model.train(mode), sample)
            losses[name, mode] = loss.item()
    assert losses["warm", False] == pytest.approx(losses["plain", False], rel=1e-6)
    assert losses["warm", True] != pytest.approx(losses["plain", True], rel=1e-3)
    lexicon = lexicon_of(plain.model)
    with torch.no_grad():
        lexicon.weight_logit.fill_(-1e4)  # λ = 0
    torch.manual_seed(0)
    loss, _, _ = plain.criterion(plain.model.train(), sample)
    assert loss.item() == pytest.approx(losses["warm", True], rel=1e-5)


def test_stopped_and_resumed_is_never_stopped(shell: Shell, translation: TranslationWorld, tmp_path: Path) -> None:
    options = ["--lexical-warmup-updates", "60", "--encoder-bidirectional"]
    checkpoint = assert_resumed_is_never_stopped(shell, translation, tmp_path, options, "lexical")
    whole = read_checkpoint(str(checkpoint))
    assert whole["cfg"]["model"].lexical_warmup_updates == 60
    assert whole["optimizer_history"][-1]["num_updates"] < 60  # all of it inside the warm-up
    said = shell.run(
        "fairseq-generate", *translation.task_args("lexical"), "--path", checkpoint, "--gen-subset", "test",
        "--max-tokens", 400, "--max-len-b", 12, "--num-workers", 0,
    ).out  # fmt: skip
    assert "H-0" in said


@pytest.mark.parametrize(
    ("prior", "updates", "message"),
    [
        ("lexical", "-1", "--lexical-warmup-updates -1: expected 0 or a number of updates"),
        ("prior", "40", "--lexical-warmup-updates 40: expected a prior with lexical translations, found one without"),
    ],
)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_is_refused(translation: TranslationWorld, arch: str, prior: str, updates: str, message: str) -> None:
    with pytest.raises(OptionError) as error:
        build([*translation.train_args(arch, prior), "--lexical-warmup-updates", updates])
    assert message in str(error.value)


@pytest.mark.slow
def test_its_absence_is_said_over_pieces(shell: Shell, translation: TranslationWorld, tmp_path: Path) -> None:
    for split in ("train", "valid"):
        words = (translation.place / f"{split}.tgt").read_text(encoding="utf-8")
        (tmp_path / f"{split}.tgt").write_text(re.sub(r"(\w\w)(\w)", r"\1@@ \2", words), encoding="utf-8")
        (tmp_path / f"{split}.src").write_bytes((translation.place / f"{split}.src").read_bytes())
    data = tmp_path / "data-bin"
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", tmp_path / "train", "--validpref",
        tmp_path / "valid", "--destdir", data,
    )  # fmt: skip
    of_pieces = ("--pieces", "bpe", "--count-text", tmp_path / "train.tgt", "--shapes")
    for name, options in {"pieces": of_pieces, "words": ()}.items():
        shell.run(
            "llrnn", "prior", "--dict", data / "dict.tgt.txt", *options, "--lexical-translation", data, "--set",
            "translations.aligner=ibm1", "--top-words", 20, "--out", data / name,
        )  # fmt: skip
    message = "--lexical-warmup-updates is missing: with a prior of pieces"
    _, *arguments = translation.train_args("llrnn_transformer")
    stock = ("--arch", "transformer", "--criterion", "cross_entropy")  # which knows nothing of any background
    for name, options, said in (
        ("pieces", (), True), ("pieces", ("--lexical-warmup-updates", 1), False), ("words", (), False),
        ("pieces", stock, False),
    ):  # fmt: skip
        training = shell.run("fairseq-train", data, *arguments, "--prior", data / name, "--max-update", 1, *options)
        assert (message in training.out + training.err) == said
