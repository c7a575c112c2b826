"""Words of texts, counted and as ids: as a loop over lines has it, in one process and in several."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.features.dictionary import EOS, UNK, WordList, count_words
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText
from fairseq_llrnn.files import text_blocks
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.ngrams.ngrams import read_sentences

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", *(f"w{i}" for i in range(30)))
WORDS = WordList(SYMBOLS, np.zeros(len(SYMBOLS), dtype=np.int64))


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 500)
    random = np.random.default_rng(7)
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        lines = [" \t"[k % 2].join(f"w{i}" for i in random.geometric(0.1, size=k)) for k in random.integers(0, 9, 300)]
        path.write_text("\n".join(["\ufeffw1\u00a0w2\r", "", *lines, "w3 end"]), encoding="utf-8")
    return paths


@pytest.mark.parametrize("workers", [1, 2])
def test_counts_and_ids_are_those_of_the_lines(texts: list[Path], workers: int) -> None:
    lines = [line.split() for path in texts for _, line in iter_lines(path)]
    counts = Counter(word for line in lines for word in line)
    assert count_words(texts, workers) == (counts, len(lines))
    expected = np.zeros(len(WORDS), dtype=np.int64)
    for word, count in counts.items():
        expected[SYMBOLS.index(word if word in SYMBOLS else UNK)] += count
    expected[SYMBOLS.index(EOS)] = len(lines)
    assert WORDS.count_text(texts, workers).tolist() == expected.tolist()
    sentences = read_sentences(texts, WORDS, workers)
    assert sentences.lengths.tolist() == [len(line) for line in lines]
    ids = [SYMBOLS.index(word if word in SYMBOLS else UNK) for line in lines for word in line]
    assert sentences.tokens.tolist() == ids


@pytest.mark.parametrize("workers", [1, 2])
def test_split_words_come_in_the_order_of_the_text(texts: list[Path], workers: int) -> None:
    for path in texts:
        path.write_text(path.read_text().replace("1", "1@@"), encoding="utf-8")
    convention = CONVENTIONS["bpe"]
    lines = [convention.split_words(line.split()) for path in texts for _, line in iter_lines(path)]
    expected = Counter(tuple(word) for line in lines for word in line)
    assert list(PieceText.read(texts, convention, workers).counts.items()) == list(expected.items())
