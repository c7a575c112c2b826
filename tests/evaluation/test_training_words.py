"""Words of training texts, as texts and as numbers, over words and over pieces; and the words of a scored line."""

from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.evaluation.texts import LineScore
from fairseq_llrnn.evaluation.training_words import training_words, words_of_lines, words_of_text
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.files.binary_text import HEADER, MAGIC

DICTIONARY = "▁le 2\n▁ch 1\nat 1\n▁mer 0\n"
LINES = {None: "▁le ▁ch at", "sentencepiece": "▁le ▁ch at", "bpe": "le ch@@ at"}


@pytest.mark.parametrize(
    ("name", "words"),
    [(None, {"▁le", "▁ch", "at"}), ("sentencepiece", {"le", "chat"}), ("bpe", {"le", "chat"})],
)
def test_words_of_a_text(tmp_path: Path, name: str | None, words: set[str]) -> None:
    convention, text = None if name is None else CONVENTIONS[name], tmp_path / "train.txt"
    text.write_text(f"{LINES[name]}\n\n{LINES[name]}\n", encoding="utf-8")
    assert words_of_text(text, convention) == words == words_of_lines([LINES[name].split()], convention)


@pytest.mark.parametrize(("name", "words"), [(None, {"▁le", "▁ch", "at"}), ("sentencepiece", {"le", "chat"})])
def test_words_of_a_text_in_numbers(tmp_path: Path, name: str | None, words: set[str]) -> None:
    sentences = [[4, 5, 6, 2], [2], [4, 2]]
    lengths, tokens = np.array([*map(len, sentences)], np.int32), np.array(sum(sentences, []), np.uint16)
    begins = ((np.cumsum(lengths) - lengths) * 2).astype(np.int64)
    (tmp_path / "train.idx").write_bytes(HEADER.pack(MAGIC, 1, 8, 3) + lengths.tobytes() + begins.tobytes())
    (tmp_path / "train.bin").write_bytes(tokens.tobytes())
    convention, dictionary = None if name is None else CONVENTIONS[name], tmp_path / "dict.txt"
    dictionary.write_text(DICTIONARY, encoding="utf-8")
    assert training_words(dictionary, convention) == words
    (tmp_path / "train.idx").write_bytes(b"another --dataset-impl")
    assert training_words(dictionary, convention) is None
    for end in ("idx", "bin"):
        (tmp_path / f"train.{end}").unlink()
    assert training_words(dictionary, convention) is None
    (tmp_path / "training-words.txt").write_text("le\nchat\n")
    assert training_words(dictionary, convention) == {"le", "chat"}


def test_the_surprisals_of_pieces_are_summed_to_words() -> None:
    line = LineScore(1, LINES["bpe"].split(), (False, True, False), (-1.0, -2.0, -4.0, -0.5), (0.0, -8.0, 0.0))
    assert list(line.per_word()) == [
        ("le", -1.0, 1, False), ("ch@@", -10.0, 1, True), ("at", -4.0, 1, False), ("</s>", -0.5, 1, False)
    ]  # fmt: skip
    assert list(line.per_word(CONVENTIONS["bpe"])) == [
        ("le", -1.0, 1, False), ("chat", -14.0, 2, True), ("</s>", -0.5, 1, False)
    ]  # fmt: skip
    assert list(LineScore(1, [], (), (-0.5,)).per_word()) == [("</s>", -0.5, 1, False)]
