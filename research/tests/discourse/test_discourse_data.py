"""`llrnn discourse`: what the folder holds, that splits share nothing, and what is said of texts that will not do."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from discourse_texts import Llrnn, Texts, tiny_text
from fuzzing import fuzz, reader_target
from hostile_readers import Reader

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import OpenWords, load_dictionary
from llrnn_research.discourse.data import (
    DESCRIPTION,
    DICTIONARY,
    RELATIONS,
    STRINGS,
    Split,
    load_split,
    load_strings,
    read_description,
    word_id,
)


def sentences(folder: Path, split: str) -> list[str]:
    """All sentences of a split, as text."""
    symbols = [*load_dictionary(folder / DICTIONARY).symbols, *load_strings(folder)]
    loaded = load_split(folder, split)
    return [" ".join(symbols[i] for i in loaded.sentence(number)) for number in range(len(loaded.ends))]


def make(llrnn: Llrnn, out: Path, train: Path, *options: object, valid: Path | None = None) -> tuple[int, str, str]:
    valid = valid or train
    return llrnn("discourse", "--train", train, "--valid", valid, "--language", "en", "--out", out, *options)


def test_the_folder_says_the_text_again(texts: Texts) -> None:
    lines = [line for line in texts.file("valid").read_text(encoding="utf-8").lower().splitlines() if line]
    found = sentences(texts.data, "valid")
    assert set(lines) <= set(found)
    split, neighbours = load_split(texts.data, "valid"), set(zip(lines, lines[1:], strict=False))
    for left, right, answer in split.examples["order"]:
        assert ((found[right], found[left]) if answer else (found[left], found[right])) in neighbours
    phrases = {"contrast": ("gloomy", "dull"), "result": ("clear", "plain"), "time": ("late", "early"),
               "addition": ("again", "more")}  # fmt: skip
    for left, right, answer in split.examples["conjunction"]:
        assert "," not in found[left] + found[right]
        assert any(word in found[right].split() for word in phrases[RELATIONS[answer]])


def test_counts_and_chance_are_said(texts: Texts, llrnn: Llrnn, tmp_path: Path) -> None:
    code, out, err = make(llrnn, tmp_path / "data", texts.file("train"), valid=texts.file("valid"))
    assert code == 0 and not err
    head, train, chance = out.splitlines()[0], out.splitlines()[-2].split(), out.splitlines()[-1].split()
    assert head.split() == ["paragraphs", "sentences", "words", "ORDER", "NEXT", "CONJUNCTION"]
    split = load_split(tmp_path / "data", "train")
    assert train[:2] == ["train", "60"] and train[4:6] == [str(60 * 8), "60"]
    assert int(train[6]) == len(split.examples["conjunction"]) > 100
    shares = [np.bincount(rows[:, -1]).max() / len(rows) for rows in split.examples.values()]
    assert chance[1:] == [f"{share:.1%}" for share in shares]
    said = read_description(tmp_path / "data")["splits"]["train"]
    assert said["examples"] == {name: len(rows) for name, rows in split.examples.items()}


@pytest.mark.parametrize(("every", "many"), [(8, 1), (1, 2)])
def test_next_examples_may_share_sentences(texts: Texts, llrnn: Llrnn, tmp_path: Path, every: int, many: int) -> None:
    """A paragraph has nine sentences."""
    make(llrnn, tmp_path / "data", texts.file("train"), "--next-every", every, valid=texts.file("valid"))
    assert len(load_split(tmp_path / "data", "train").examples["next"]) == 60 * many
    assert read_description(tmp_path / "data")["next_every"] == every


def test_the_same_seed_gives_the_same_bytes(texts: Texts, llrnn: Llrnn, tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        make(llrnn, tmp_path / name, texts.file("train"), "--seed", seed, valid=texts.file("valid"))
    one, two, three = ((tmp_path / name / "train.npz").read_bytes() for name in ("one", "two", "three"))
    assert one == two != three


def test_no_paragraph_is_in_two_splits(texts: Texts, llrnn: Llrnn, tmp_path: Path) -> None:
    """Compressed files as well; single lines may be said in both."""
    train = tmp_path / "train.txt.gz"
    valid = texts.file("valid").read_text(encoding="utf-8")
    with gzip.open(train, "wt", encoding="utf-8") as file:
        file.write(tiny_text(10, 9) + valid.upper() + "\nYes .\n\n")
    other = tmp_path / "valid.txt"
    other.write_text(valid + "\nYes .\n", encoding="utf-8")
    code, _, err = make(llrnn, tmp_path / "data", train, "--lower", valid=other)
    assert code == 0
    assert "note: 20 paragraphs of train left out, because another split has the same\n" in err
    shared = set(sentences(tmp_path / "data", "train")) & set(sentences(tmp_path / "data", "valid"))
    assert "yes ." in shared and len(shared) < 9, "short sentences are said by chance"


def test_unknown_words_keep_their_strings(texts: Texts, llrnn: Llrnn, tmp_path: Path) -> None:
    make(llrnn, tmp_path / "data", texts.file("train"), "--words", 5, valid=texts.file("valid"))
    assert len(load_dictionary(tmp_path / "data" / DICTIONARY)) == 9
    whole = sentences(tmp_path / "data", "train")
    assert "Step0" in whole[0] and "<unk>" not in " ".join(whole)


def test_symbols_of_a_dictionary_are_unknown_words(llrnn: Llrnn, tmp_path: Path) -> None:
    text, valid = tmp_path / "text", tmp_path / "valid"
    text.write_text("<pad> </s>\n<s> a\n\na b\nc d\n", encoding="utf-8")
    valid.write_text("e\nf\n\n", encoding="utf-8")
    assert make(llrnn, tmp_path / "data", text, valid=valid)[0] == 0
    assert sentences(tmp_path / "data", "train")[:2] == ["<unk> <unk>", "<unk> a"]
    words = OpenWords(load_dictionary(tmp_path / "data" / DICTIONARY).symbols)
    assert (word_id(words, "</s>"), word_id(words, "new", False), word_id(words, "new")) == (3, 3, words.num_words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\ntwo\nthree\n", "expected paragraphs with an empty line after each, found 3 lines and no empty one"),
        ("one\n\ntwo\n\n", "paragraphs of several sentences, a sentence a line, found 2 paragraphs of one line"),
        ("", "expected paragraphs with an empty line after each, found 0 lines"),
        ("\n\n", "expected paragraphs of several sentences"),
    ],
)
def test_a_text_without_paragraphs(text: str, message: str, llrnn: Llrnn, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text(text, encoding="utf-8")
    code, _, err = make(llrnn, tmp_path / "data", file)
    assert code == 2 and err.startswith(f"llrnn: error: {file}: expected ") and message in err, err
    assert not (tmp_path / "data").exists()


def test_bad_options(texts: Texts, llrnn: Llrnn, tmp_path: Path) -> None:
    train = texts.file("train")
    for options, message in (
        ((tmp_path / "data", train), "--train: all its 60 paragraphs are in other splits"),
        ((tmp_path / "data", train, "--words", 0), "--words 0: expected a number of at least 1"),
        ((tmp_path / "data", train, "--next-every", 0), "--next-every 0: expected a number of at least 1"),
        ((tmp_path / "no" / "data", train), "expected a folder, or a new name in an existing folder"),
        ((tmp_path / "data", tmp_path / "none"), f"{tmp_path / 'none'}: cannot be read: No such file or directory"),
    ):
        code, _, err = make(llrnn, *options)
        assert code == 2 and message in err, err


def test_a_folder_with_something_else_is_no_place(texts: Texts, llrnn: Llrnn, tmp_path: Path) -> None:
    """Not even that of the texts, nor a data folder into which somebody put his own."""
    own, made = tmp_path / "texts", tmp_path / "data"
    own.mkdir()
    train, valid = own / "train.txt", own / "valid.txt"
    for split, place in (("train", train), ("valid", valid)):
        place.write_bytes(texts.file(split).read_bytes())
    assert make(llrnn, made, train, valid=valid)[0] == make(llrnn, made, train, valid=valid)[0] == 0  # again: replaced
    (made / "thesis.tex").write_text("all of it", encoding="utf-8")
    for place in (own, made):
        code, _, err = make(llrnn, place, train, valid=valid)
        assert code == 2 and f"--out {place}: expected a new folder, or one of an earlier run, found some" in err
    assert train.exists() and valid.exists() and (made / "thesis.tex").exists()


def test_a_split_without_examples_is_noted(llrnn: Llrnn, tmp_path: Path) -> None:
    for name, text in {"train": "a b\nc d\n\n", "valid": "e\nf\n\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    _, _, err = make(llrnn, tmp_path / "data", tmp_path / "train", valid=tmp_path / "valid")
    assert "note: train has no example of NEXT\n" in err and "note: valid has no example of CONJUNCTION\n" in err


# ---- damaged folders -------------------------------------------------------------------------------------------------


def test_numbers_out_of_range_are_refused(texts: Texts, tmp_path: Path) -> None:
    words = len(load_dictionary(texts.data / DICTIONARY)) + len(load_strings(texts.data))
    good = load_split(texts.data, "test")

    def refused(message: str, **changed: np.ndarray) -> None:
        parts = {"tokens": good.tokens, "ends": good.ends, "examples": dict(good.examples)}
        for name, value in changed.items():
            (parts if name in parts else parts["examples"])[name] = value
        Split(**parts).save(tmp_path / "it.npz")
        with pytest.raises(DataError, match=message):
            Split.load(tmp_path / "it.npz", words)

    rows = good.examples["order"]
    refused("expected ids of words from 3 to", tokens=good.tokens * 0 + 1)
    refused("expected ids of words from 3 to", tokens=good.tokens * 0 + words)
    refused("expected contiguous sentences of one word or more", ends=good.ends[::-1].copy())
    refused("expected numbers of sentences for 'order'", order=rows + np.int32(len(good.ends)))
    refused("expected answers for 'order' from 0 to 1", order=np.where([False, False, True], np.int32(2), rows))
    refused("expected an array 'next' of 2 dimensions", next=good.examples["next"].astype(np.float32))


def test_what_is_no_folder_of_ours(texts: Texts, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a data folder of `llrnn discourse`, found no discourse.json in it"):
        read_description(tmp_path)
    shutil.copytree(texts.data, tmp_path / "data")
    (tmp_path / "data" / DESCRIPTION).write_text(json.dumps({"relations": ["one"], "lower": True}), encoding="utf-8")
    with pytest.raises(DataError, match="expected a description by this version of `llrnn discourse`"):
        read_description(tmp_path / "data")


@pytest.mark.slow
@pytest.mark.real_data("eltec-eng", "eltec-fra")
@pytest.mark.parametrize(("corpus", "language"), [("eltec-eng", "en"), ("eltec-fra", "fr")])
def test_on_novels(corpus: str, language: str, shared_data: Path, llrnn: Llrnn, tmp_path: Path) -> None:
    """valid and test, which are shorter than train, and of other authors."""
    train, valid = (shared_data / corpus / f"{split}.txt.gz" for split in ("valid", "test"))
    out = tmp_path / "data"
    assert llrnn("discourse", "--train", train, "--valid", valid, "--language", language, "--out", out)[0] == 0
    split = load_split(out, "train")
    assert len(split.examples["order"]) > 7_000 and len(split.examples["next"]) > 200
    assert len(split.examples["conjunction"]) > 50
    assert 0.48 < split.examples["order"][:, -1].mean() < 0.52


# Damaged files of the data folder are read or refused, never more (tests/torture, for this system's files)
INPUTS = 40


@pytest.mark.parametrize("file", ["test.npz", DESCRIPTION, STRINGS])
def test_a_damaged_file(file: str, texts: Texts, tmp_path: Path) -> None:
    def read(path: Path) -> None:
        place = path.parent / "data"
        shutil.copytree(texts.data, place, ignore=shutil.ignore_patterns("train.npz", "valid.npz"))
        shutil.copy(path, place / file)
        read_description(place)
        load_strings(place)
        split = load_split(place, "test")
        assert all(len(split.sentence(number)) for row in split.examples["order"] for number in row[:-1])

    reader = Reader(f"discourse {file}", file, ((texts.data / file).read_bytes(),), read, names_file=False)
    for part in ("sound", "inputs"):
        (tmp_path / part).mkdir()
    (tmp_path / "sound" / file).write_bytes(reader.samples[0])
    read(tmp_path / "sound" / file)
    found = fuzz(reader_target(reader), reader.name, INPUTS, 1, tmp_path / "inputs")
    assert not found.faults, found.faults[:3]
    assert found.counts["refused"]


def test_a_split_that_is_no_archive(texts: Texts, tmp_path: Path) -> None:
    shutil.copytree(texts.data, tmp_path / "data")
    (tmp_path / "data" / "test.npz").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"test.npz: expected the arrays of a split, found a damaged file \("):
        load_split(tmp_path / "data", "test")


def test_a_full_disk(texts: Texts, llrnn: Llrnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(split: Split, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Split, "save", full)
    given = [f"--{split}={texts.file(split)}" for split in ("train", "valid")]
    code, _, said = llrnn("discourse", *given, "--language", "en", "--out", tmp_path / "data")
    assert code == 2 and "data: the result cannot be written (No space left on device); check the rights" in said
    assert not (tmp_path / "data").exists()


def test_a_criterion_beside_another_model() -> None:
    criterion = pytest.importorskip("llrnn_research.discourse.plugin.criterion").DiscourseCriterion(None)
    with pytest.raises(OptionError, match="--criterion discourse: needs --arch discourse_encoder, found another"):
        criterion(torch.nn.Linear(1, 1), {})
