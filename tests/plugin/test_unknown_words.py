"""The share of unknown words in data sets of fairseq, whatever kind of files they have."""

import logging
from pathlib import Path

import pytest
from binary_texts import write_binary_text
from fairseq.data import ConcatDataset, Dictionary, data_utils

from fairseq_llrnn.plugin.data.unknown_words import (
    WRITTEN,
    Share,
    check_words,
    counted_unknown,
    report,
    report_written,
)

LINES = ["le chat voit", "le xyzzy <unk>", "", "la mer"]  # of which 2 of 8 words are unknown


@pytest.fixture
def words() -> Dictionary:
    made = Dictionary()
    for word in "le la chat mer voit".split():
        made.add_symbol(word, 10)
    return made


@pytest.mark.parametrize("kind", ["mmap", "raw", "cached", "parts"])
def test_unknown_words_of_every_kind_of_data(
    tmp_path: Path, words: Dictionary, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairseq_llrnn.plugin.data.unknown_words.CHUNK", 3)
    rows = [words.encode_line(line, add_if_not_exist=False).tolist() for line in LINES]
    prefix, options = str(tmp_path / "test"), {"dataset_impl": None if kind == "parts" else kind, "combine": False}
    if kind == "raw":
        (tmp_path / "test").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    elif kind == "cached":
        from fairseq.data.indexed_dataset import IndexedDatasetBuilder
        from torch import IntTensor

        builder = IndexedDatasetBuilder(f"{prefix}.bin")
        for row in rows:
            builder.add_item(IntTensor(row))
        builder.finalize(f"{prefix}.idx")
    else:
        write_binary_text(tmp_path / "test", rows if kind == "mmap" else rows[:2])
        if kind == "parts":
            write_binary_text(tmp_path / "test1", rows[2:])
            options["combine"] = True
    with counted_unknown() as shares:
        data = data_utils.load_indexed_dataset(prefix, words, **options)
        assert data_utils.load_indexed_dataset(str(tmp_path / "no"), words, None) is None
    assert len(data) == 4 and isinstance(data, ConcatDataset) == (kind == "parts")
    assert shares == [Share(prefix, words, 2, 8)]


@pytest.mark.parametrize(
    ("unknown", "is_open", "level", "says"),
    [
        (0, False, logging.INFO, "0 of the 100 tokens of data/test are outside the dictionary"),
        (5, False, logging.INFO, "5 of the 100 tokens of data/test are outside the dictionary (5.0%) and count as "
         "<unk>"),
        (6, False, logging.WARNING, "6 of the 100 tokens of data/test are outside the dictionary (6.0%) and count as "
         "<unk>. With so many, a perplexity is too low. Check the tokenisation and case of the text; if they are "
         "right, use a larger dictionary (llrnn dictionary --text FILES), pieces, or an open vocabulary (llrnn prior "
         "--open-vocabulary characters)"),
        (6, True, logging.INFO, "6 of the 100 tokens of data/test are <unk> (6.0%): binary data has no strings; `llrnn "
         "score --open` spells them"),
        (60, False, logging.WARNING, "40 of the 100 tokens of data/test are words of the dictionary: is it of the "
         "text's language, and in its case?"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_share(
    words: Dictionary, caplog: pytest.LogCaptureFixture, unknown: int, is_open: bool, level: int, says: str
) -> None:
    caplog.set_level(logging.INFO, "fairseq_llrnn.plugin")  # a command in this process may have silenced it
    report(Share("data/test", words, unknown, 100), is_open)
    assert caplog.record_tuples == [("fairseq_llrnn.plugin.data.unknown_words", level, says)]


def test_what_is_said_of_a_validation_text(words: Dictionary, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fairseq_llrnn.plugin")
    report(Share("data/valid", words, 6, 100), True)
    report(Share("data/valid", words, 0, 100, 6), True)
    report(Share("data/valid", words, 0, 100, 6), False)  # strings that are copied, of a model without open classes
    assert caplog.messages[0].endswith("spells them, and so does training, if you copy the text to data/valid first")
    assert caplog.messages[1:] == [
        "6 of the 100 tokens of data/valid are outside the dictionary (6.0%); the open vocabulary spells them",
        "0 of the 100 tokens of data/valid are outside the dictionary",
    ]


def test_a_dictionary_of_texts_that_are_not_tokenised(words: Dictionary, caplog: pytest.LogCaptureFixture) -> None:
    check_words(words, "data/train")
    assert not caplog.messages
    words.add_symbol("chat.", 3)
    check_words(words, "data/train")
    assert caplog.messages == [
        "the texts of the dictionary of data/train: punctuation is glued to 3 of 53 words, such as 'chat.': tokenise "
        "it (sacremoses -l LANGUAGE tokenize < TEXT > TEXT.tok; pip install sacremoses)"
    ]


def test_generated_words(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.INFO, "fairseq_llrnn.plugin")  # a command in this process may have silenced it
    WRITTEN.clear()
    report_written()
    monkeypatch.setitem(WRITTEN, "words", 2000)
    monkeypatch.setitem(WRITTEN, "unknown", 90)
    report_written()
    assert caplog.messages == ["90 of the 2,000 generated words are <unk> (4.5%)"]
