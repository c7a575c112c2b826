"""The texts of a comparison: from a folder and files, with a held-out part, and messages about unsuitable ones."""

import gzip
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fairseq_llrnn
from fairseq_llrnn.cli.compare import _option_name
from fairseq_llrnn.comparison.settings import Comparison
from fairseq_llrnn.comparison.texts import read_texts, write_treebank
from fairseq_llrnn.errors import DataError, LLRNNError
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers.conllu import conllu_lines
from fairseq_llrnn.settings import checked


def treebank(begin: int, size: int, letter: str = "w") -> str:
    """Return sentences of five words, all different."""
    blocks = []
    for sentence in range(begin, begin + size):
        begins = f"{letter.upper()}{chr(97 + sentence % 9)}"
        rows = [f"{i}\t{begins}{letter * i}\t_\tNOUN\t_\t_\t0\t_\t_\t_" for i in range(1, 5)]
        rows.append(f"5\t{letter}{sentence}\t_\tNUM\t_\t_\t0\t_\t_\t_")
        blocks.append("\n".join([f"# text = {sentence}", *rows]) + "\n\n")
    return "".join(blocks)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "UD_Made-Up"
    place.mkdir()
    (place / "xx_up-ud-train.conllu").write_text(treebank(0, 120))
    (place / "xx_up-ud-test.conllu.gz").write_bytes(gzip.compress(treebank(200, 20).encode()))
    return place


def test_a_folder_without_a_validation_part(folder: Path, tmp_path: Path) -> None:
    texts = read_texts(settings := Comparison(tmp_path / "out", folder))
    assert [len(texts.lines(split)) for split in ("train", "valid", "test")] == [108, 12, 20]
    assert texts.notes == ["no validation text: the last 12 training sentences are held out for it"]
    assert texts.valid[0].split()[-1] == "w108" and texts.train[0] == "Waw Waww Wawww Wawwww w0"
    # features come from a treebank without the held-out sentences
    write_treebank(texts)
    assert texts.treebanks == [str(settings.out / "train.conllu")]
    lines = [" ".join(words) for words in conllu_lines([*texts.treebanks], "syntactic", None, None)]
    assert lines == texts.train


def test_a_folder_with_a_validation_part(folder: Path, tmp_path: Path) -> None:
    (folder / "xx_up-ud-dev.conllu").write_text(treebank(300, 11))
    texts = read_texts(Comparison(tmp_path / "out", folder, lower=""))
    assert len(texts.train) == 120 and len(texts.valid) == 11 and not texts.notes
    assert texts.test[0] == "wcw wcww wcwww wcwwww w200"
    assert texts.treebanks == [str(folder / "xx_up-ud-train.conllu")] and texts.cut is None


def test_texts_without_empty_lines(tmp_path: Path) -> None:
    for name, begin, size in (("train", 0, 110), ("valid", 200, 10), ("test", 300, 10)):
        (tmp_path / name).write_text("".join(f"Ein  Satz mit Nummer {i} .\n\n" for i in range(begin, begin + size)))
    files = tmp_path / "train", tmp_path / "valid", tmp_path / "test"
    texts = read_texts(Comparison(tmp_path / "out", None, *files))
    assert len(texts.train) == 110 and texts.train[1] == "Ein Satz mit Nummer 1 ." and texts.treebanks == []
    assert texts.summary()[2] == "test        10 sentences         60 words, 16.7% not in the training text"
    assert read_texts(Comparison(tmp_path / "out", None, *files, lower="")).test[0].startswith("ein satz")


def expect(settings: Comparison, message: str) -> None:
    with pytest.raises(LLRNNError) as found:
        read_texts(settings)
    assert message in str(found.value)


def test_unsuitable_texts(folder: Path, tmp_path: Path) -> None:
    out, empty, train = tmp_path / "out", tmp_path / "empty", folder / "xx_up-ud-train.conllu"
    empty.mkdir()
    expect(Comparison(out, empty), "expected CoNLL-U files, such as cy_ccg-ud-train.conllu, found none")
    expect(Comparison(out, tmp_path / "no"), "expected the folder of a treebank, found no such folder")
    expect(Comparison(out, train), "found a file; pass it with train")
    repeated = "expected a test text that the training text lacks, found 108 of 120"
    expect(Comparison(out, train=train, test=train), repeated)
    (tmp_path / "short.conllu").write_text(treebank(0, 50))
    short = Comparison(out, train=tmp_path / "short.conllu", test=train)
    expect(short, "at least 100 sentences of the train text, found 45")
    (tmp_path / "other.conllu").write_text(treebank(0, 50, "q"))
    other = Comparison(out, folder, words=LexiconOptions(conllu=str(tmp_path / "other.conllu")))
    expect(other, "other.conllu: expected a treebank in the language of the training text, found 0 of its ")
    other = Comparison(out, train=train, test=tmp_path / "other.conllu")
    expect(other, "other.conllu: expected a test text in the language of the training text, found 0 of its ")


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("<unk>", "expected words, found <unk>, a symbol of the models; give the text without replaced words, or"),
        ("<UNK>", "expected words, found <unk>, a symbol of the models; give the text"),  # in lower case
        ("</s>", "expected words, found </s>, a symbol of the models; remove it, or write another word for it in all"),
        ("<s>", "found <s>"),
        ("<pad>", "found <pad>"),
        ("a\u2581b", "expected words without \u2581 (U+2581), with which pieces write blanks, found it; replace it in"),
        ("\u2581", "or leave pieces out of the models"),
    ],
)
def test_symbols_that_are_no_words(split: str, word: str, message: str, tmp_path: Path) -> None:
    files = {}
    for name, begin, size in (("train", 0, 110), ("valid", 200, 10), ("test", 300, 10)):
        lines = [f"Ein Satz mit Nummer {i} .\n" for i in range(begin, begin + size)]
        lines[3:3] = ["\n"] + ([f"noch {word} ein\n"] if name == split else [])
        files[name] = tmp_path / f"{name}.txt"
        files[name].write_text("".join(lines))
    lowered = Comparison(
        tmp_path / "out", None, files["train"], files["valid"], files["test"], lower="" if word == "<UNK>" else None
    )
    expect(lowered, f"{files[split]}, line 5: ")
    expect(lowered, message)
    if "\u2581" in word:
        assert read_texts(replace(lowered, models=["ngrams", "softmax"])).train


def test_a_symbol_in_a_treebank_has_its_sentence(folder: Path, tmp_path: Path) -> None:
    train = folder / "xx_up-ud-train.conllu"
    train.write_text(treebank(0, 7) + treebank(7, 1).replace("w7\t", "<unk>\t") + treebank(8, 120))
    expect(Comparison(tmp_path / "out", folder), f"{train}, sentence 8: expected words, found <unk>")


def test_some_repeated_sentences_are_only_noted(folder: Path, tmp_path: Path) -> None:
    (folder / "xx_up-ud-dev.conllu").write_text(treebank(0, 3) + treebank(300, 11))
    texts = read_texts(Comparison(tmp_path / "out", folder))
    assert texts.notes == ["the training text has 3 of 14 sentences of the valid text"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({}, "expected FOLDER, the folder of a treebank, or --train and --test with files, found neither; give one"),
        ({"lower": "UD_Welsh-CCG"}, "--lower UD_Welsh-CCG: expected the code of a language"),
        ({"lower": "./UD_X"}, "leave it empty for all languages but these three, and write FOLDER before it"),
        ({"models": ["ngrams", "UD_X"]}, "--models: expected ngrams, softmax, "),
        ({"folder": "a", "lower": "xx"}, "--lower xx: expected the code of a language, such as tr, az or lt, found no"),
        ({"folder": "a", "lower": "a text"}, "--lower a text: expected the code of a language"),
        ({"folder": "a", "train": "b"}, "found both"),
        ({"train": "b"}, "--train needs --test"),
        ({"folder": "a", "valid": "b"}, "--valid and --test need --train"),
        ({"folder": "a", "models": ["softmx"]}, "did you mean softmax?"),
        ({"folder": "a", "models": []}, "--models: expected names, found none"),
        ({"folder": "a", "models": ["mixed", "suffixes"]}, "--models mixed: it needs ngrams"),
        ({"folder": "a", "tries": 0}, "--tries: expected a number of at least 1, found 0; correct it"),
        ({"folder": "a", "tries": 7}, "--tries: expected a number of at most 6, found 7"),
        ({"folder": "a", "seeds": [1, 1]}, "--seeds: expected different numbers, found 1 1; correct them"),
        ({"folder": "a", "max_epoch": 0}, "--max-epoch: expected a number of at least 1"),
        ({"folder": "a", "jobs": 0}, "--jobs: expected a number of at least 1"),
    ],
)
def test_choices_that_exclude_each_other(choices: dict[str, object], message: str) -> None:
    with pytest.raises(LLRNNError, match=re.escape(message)):
        checked(Comparison, {"out": "out"} | choices, _option_name).check(_option_name)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"seeds": 3}, "seeds: expected a list, found 3; correct it"),
        ({"seeds": [True]}, "seeds: expected a whole number, found true; correct it"),
        ({"seeds": [1, -1]}, "seeds: expected a number of at least 0, found -1"),
        ({"seeds": "12"}, "seeds: expected a list, found 12"),
        ({"seeds": []}, "seeds: expected different numbers, found none"),
        ({"lower": True}, "lower: expected text, found true; correct it"),
        ({"out": None}, "out: expected a path, found None; correct it"),
        ({"jobs": {}}, "jobs: expected a whole number, found an object of dict; correct it"),
        ({"words": 3}, "words: expected a section, found 3; correct it"),
        ({"words": {"lexicn": "a"}}, "compare: there is no key words.lexicn; did you mean words.lexicon?"),
        ({"words": {"conllu": "no.conllu"}}, "words.conllu no.conllu: cannot be read"),
        ({"words": LexiconOptions(lexicon=3)}, "words.lexicon: expected "),
        ({"words": LexiconOptions(conllu="no.conllu")}, "words.conllu no.conllu: cannot be read"),
        ({"models": "ngrams"}, "models: expected a list, found 'ngrams'; correct it"),
        ({"models": ["lexicn"]}, "did you mean lexicon?"),
        ({"models": ["lexicon"]}, "models lexicon: it needs features of words, found no source of them; add words.con"),
        ({"quick": 2}, "quick: expected true or false, found 2; correct it"),
        ({"folder": 3}, "folder: expected a path, found 3; correct it"),
        ({"pretrained": ["a"]}, "pretrained: expected a path, found ['a']; correct it"),
        ({"max_epoch": "x"}, "max_epoch: expected a whole number, found 'x'"),
        ({"spelling_lexicon": 3}, "spelling_lexicon: expected text or a path, found 3"),
        ({"folder": None}, "expected folder, the folder of a treebank, or train and test with files, found neither"),
        ({"test": "a"}, "valid and test need train"),
    ],
)
def test_messages_in_python_have_names_of_arguments(
    choices: dict[str, Any], message: str, folder: Path, tmp_path: Path
) -> None:
    choices = {"out": tmp_path / "out", "folder": folder} | choices
    if choices.get("models") == ["lexicon"]:
        for name, begin in (("train", 0), ("test", 200)):
            (tmp_path / name).write_text("".join(f"one sentence {n}\n" for n in range(begin, begin + 150)))
        choices |= {"folder": None, "train": tmp_path / "train", "test": tmp_path / "test"}
    with pytest.raises(LLRNNError, match=re.escape(message)) as found:
        fairseq_llrnn.compare(**choices)
    assert "--" not in str(found.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no.txt"):
        read_texts(Comparison(tmp_path / "out", train=tmp_path / "no.txt", test=tmp_path / "no.txt"))
