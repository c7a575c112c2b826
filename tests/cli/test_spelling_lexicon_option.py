"""`llrnn prior --spelling-lexicon`: what is built, stored and shown."""

import re
from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.cli.main import main
from fairseq_llrnn.evaluation.prior_scorer import PriorScorer
from fairseq_llrnn.prior import Prior
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart

TEXT = "le chat dort\nla rose est rouge\nle chien aboie\nla pomme est verte\nle mur est blanc\nla vache broute\n"
NEW = ["chats", "roses", "pommes", "murs", "vaches"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.txt").write_text(TEXT, encoding="utf-8")
    words = sorted({*TEXT.split()})
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    (tmp_path / "list.txt").write_text("\n".join([*NEW, *words]) + "\n", encoding="utf-8")
    (tmp_path / "x.aff").write_text("SET UTF-8\nSFX S Y 1\nSFX S 0 s .\n", encoding="utf-8")
    stems = "chat rose pomme mur vache chien".split()
    (tmp_path / "x.dic").write_text("\n".join(["6", *(f"{stem}/S" for stem in stems)]) + "\n", encoding="utf-8")
    return tmp_path


def build(folder: Path, *options: str, out: str = "prior") -> Prior:
    command = ["prior", "--dict", str(folder / "dict.txt"), "--count-text", str(folder / "train.txt")]
    command += ["--open-vocabulary", "characters", "--set", "words.keep_case=true", *options]
    assert main([*command, "--out", str(folder / out)]) == 0
    return Prior.load(folder / out)


@pytest.mark.parametrize("names", [["list.txt"], ["x.dic"], ["list.txt", "x.dic"]])
def test_words_of_the_lexicon_become_probable(names: list[str], folder: Path) -> None:
    plain = build(folder, out="plain")
    prior = build(folder, "--spelling-lexicon", *(str(folder / name) for name in names))
    spelt = [sum(next(PriorScorer(model).lines([" ".join(NEW)], True)).spelt) for model in (prior, plain)]
    assert spelt[0] > spelt[1] + 3 * len(NEW)
    again = Prior.load(folder / "prior")
    assert again.fingerprint == prior.fingerprint != plain.fingerprint


def test_the_lexicon_is_shown_with_its_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "list.txt").write_text("\n".join(["mers", "murs", "vert", "broute"]) + "\n", encoding="utf-8")
    build(folder, "--spelling-lexicon", str(folder / "list.txt"), str(folder / "x.dic"))
    capsys.readouterr()
    assert main(["show", str(folder / "prior")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"lexicon: list of \d+ words, weight \d+\.\d%", shown)
    assert re.search(r"lexicon: affixes of 6 stems, weight \d+\.\d%", shown)
    origins = " ".join(Prior.load(folder / "prior").settings["sources"])
    for name in ("list.txt", "x.dic", "x.aff"):
        assert re.search(rf"--spelling-lexicon {name} [0-9a-f]{{16}}", origins)


def test_the_option_makes_an_open_vocabulary(folder: Path) -> None:
    command = ["prior", "--dict", str(folder / "dict.txt"), "--count-text", str(folder / "train.txt")]
    command += ["--spelling-lexicon", str(folder / "list.txt"), "--out", str(folder / "prior")]
    assert main(command) == 0
    part = Prior.load(folder / "prior").find(OpenVocabularyPart)
    assert part is not None and part.vocabulary.strings.lexicon is not None


def test_a_network_that_spells_keeps_its_folds(folder: Path) -> None:
    """Rare words without a part have the lexicon, too."""
    prior = build(folder, "--spelling-lexicon", str(folder / "list.txt"), "--open-vocabulary", "neural")
    part = prior.find(OpenVocabularyPart)
    assert part is not None and part.vocabulary.class_words is not None
    vocabulary = part.vocabulary
    for fold in range(5):
        strings = part.vocabulary.class_words.without(vocabulary.strings, fold)
        assert strings.lexicon is vocabulary.strings.lexicon
        outside = strings.log_outside([word for word in dict.fromkeys(TEXT.split())])
        np.testing.assert_allclose(part.vocabulary.class_words.log_outside[fold], outside)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("chat\tmany\n", "bad.txt, line 1: expected a count or frequency"),
        ("", "bad.txt: expected a word in each line, found none"),
    ],
)
def test_a_bad_list_is_one_error(content: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.txt").write_text(content, encoding="utf-8")
    command = ["prior", "--dict", str(folder / "dict.txt"), "--count-text", str(folder / "train.txt")]
    command += ["--spelling-lexicon", str(folder / "bad.txt"), "--out", str(folder / "prior")]
    assert main(command) != 0
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert not (folder / "prior").exists()


def test_the_licence_of_a_package_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("wordfreq")
    build(folder, "--spelling-lexicon", "language:French")
    capsys.readouterr()
    assert main(["show", str(folder / "prior")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"wordfreq [\d.]+: frequencies of \d+ words \(fr\)", shown) and "CC BY-SA 4.0" in shown
