"""What `llrnn prior --lexical-translation` refuses: options, folders and files."""

import shutil
import sys
from pathlib import Path

import pytest
from shell import Shell
from small_bitext import ENGLISH, FRENCH, Run, preprocess
from small_corpus import Llrnn


def test_an_aligner_that_is_not_installed(prior: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    assert prior("--set", "translations.aligner=eflomal").error == (
        "aligner eflomal: the Python module eflomal is not installed; in a checkout of fairseq_llrnn: "
        "pip install '.[align]' (it needs a C compiler), or choose the aligner ibm1"
    )
    assert not (data / "prior").exists()


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        *((f"translations.weight={weight}", f"--set translations.weight: expected a …found {weight}; correct it")
          for weight in ("1.0", "1.5", "nan", "inf", "-0.1")),
        ("translations.weight=much", "--set translations.weight: expected a number, found 'much'; correct it"),
        ("translations.top=0", "--set translations.top: expected a number of at least 1, found 0; correct it"),
    ],
)  # fmt: skip
def test_a_number_out_of_range(prior: Run, data: Path, setting: str, says: str) -> None:
    prior("--set", setting).refuses(says)
    assert not (data / "prior").exists()


@pytest.mark.parametrize("setting", ["translations.learned=true", "translations.top=3", "translations.aligner=ibm1"])
def test_options_without_a_bitext(data: Path, llrnn: Llrnn, setting: str) -> None:
    done = llrnn("prior", "--dict", data / "dict.fr.txt", "--top-words", 3, "--out", data / "prior", "--set", setting)
    expected = "translations.data: expected folder of fairseq-preprocess with a bitext, found nothing; add "
    assert done.error == f"{expected}--lexical-translation"


def test_no_bitext_in_it(prior: Run, data: Path) -> None:
    (data / "train.en-fr.en.idx").unlink()
    (data / "valid.en-fr.en.idx").write_bytes(b"")
    (data / "train.bin").write_bytes(b"")
    assert prior().error == (
        f"--lexical-translation {data}: expected a bitext (train.SRC-TGT.SRC.bin, train.SRC-TGT.TGT.bin and their "
        ".idx), found none; run fairseq-preprocess with --source-lang, --target-lang and --trainpref"
    )


def test_several_language_pairs(prior: Run, data: Path) -> None:
    for end in ("bin", "idx"):
        for language, other in (("en", "de"), ("fr", "fr")):
            shutil.copy(data / f"train.en-fr.{language}.{end}", data / f"train.de-fr.{other}.{end}")
    assert prior().error == (
        f"--lexical-translation {data}: expected one language pair, found de-fr, en-fr; use a folder with one of them"
    )


def test_a_dictionary_that_is_none_of_them(prior: Run, data: Path) -> None:
    other = data / "dict.other.txt"
    other.write_text("le 3\nla 2\nles 1\n", encoding="utf-8")
    assert prior("--dict", other).error == (
        f"--lexical-translation {data}: expected its dict.en.txt or dict.fr.txt to have the words of --dict {other}, "
        "found others; pass one of the two as --dict"
    )


def test_sides_of_different_sizes(prior: Run, data: Path, shell: Shell, tmp_path: Path) -> None:
    less = tmp_path / "less"
    preprocess(
        shell, less, ENGLISH[:1], FRENCH[:1], "--srcdict", data / "dict.en.txt", "--tgtdict", data / "dict.fr.txt"
    )
    for end in ("bin", "idx"):
        shutil.copy(less / f"train.en-fr.fr.{end}", data)
    assert prior().error == (
        f"{data}/train.en-fr: expected as many sentences in both languages, found 25 of en and 1 of fr; run "
        "fairseq-preprocess again, on texts with equal numbers of lines and without carriage returns, which would end "
        "a sentence"
    )


@pytest.mark.parametrize("content", [b"", b"TNTIDX\x00\x00", b"MMIDIDX\x00\x00\x01"])
def test_an_index_of_another_kind(prior: Run, data: Path, content: bytes) -> None:
    (data / "train.en-fr.en.idx").write_bytes(content)
    assert prior().error == (
        f"{data}/train.en-fr.en.idx: expected the index of a memory-mapped dataset, found something else, or no "
        "sentences; run fairseq-preprocess again, with --dataset-impl mmap (its default)"
    )


def test_an_index_or_data_cut_short(prior: Run, data: Path) -> None:
    index, binary = data / "train.en-fr.en.idx", data / "train.en-fr.en.bin"
    whole, tokens = index.read_bytes(), binary.read_bytes()
    index.write_bytes(whole[:-1])
    assert "expected the index of a memory-mapped dataset" in prior().error
    index.write_bytes(whole)
    binary.write_bytes(tokens[:-3])
    assert f"{binary}: expected " in prior().error and "as in its index, found a shorter file; run" in prior().error


def test_words_outside_the_dictionary(prior: Run, data: Path) -> None:
    lines = (data / "dict.en.txt").read_text(encoding="utf-8").splitlines()
    (data / "dict.en.txt").write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    assert prior().error.startswith(
        f"{data}/train.en-fr.en.bin: expected numbers of the 6 words of its dictionary, found "
    )
