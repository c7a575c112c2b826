r"""Lines end only at \n in every reader of texts, so that parallel files never get out of step."""

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from lexicons import ENDS

from fairseq_llrnn.alignment.bitext import ParallelText, read_text_bitext
from fairseq_llrnn.cli.places import text_lines
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.rules import read_evidence_map
from fairseq_llrnn.features.dictionary import WordList, count_words, read_ids
from fairseq_llrnn.files.text_blocks import iter_blocks
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.ngrams.ngrams import read_sentences
from fairseq_llrnn.systems.reranking.nbest import open_nbest
from fairseq_llrnn.systems.reranking.texts import read_texts

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "a", "b")


def words() -> WordList:
    return WordList(SYMBOLS, np.ones(len(SYMBOLS), dtype=np.int64))


def moses(path: Path) -> int:
    lines = path.read_bytes().decode().split("\n")[:-1]
    path.write_bytes("".join(f"{i} ||| {line} ||| F0= -1 ||| -1\n" for i, line in enumerate(lines)).encode())
    return len(list(open_nbest(path)))


def rows(read: Callable[[Path], object]) -> Callable[[Path], int]:
    """Return the rows of a reader of tables, with the phrase in the second column."""

    def count(path: Path) -> int:
        lines = path.read_bytes().decode().split("\n")[:-1]
        path.write_bytes("".join(f"s{i}\t{line}\n" for i, line in enumerate(lines)).encode())
        return len(read(path))  # type: ignore[arg-type]

    return count


LINES: dict[str, Callable[[Path], int]] = {
    "lines": lambda path: len(list(iter_lines(path))),
    "lines of llrnn score": lambda path: len(list(text_lines(str(path)))),
    "lines of llrnn score from stdin": lambda _: len(list(text_lines("-"))),
    "bitext of phrases": lambda path: len(read_text_bitext(path, path).bitext.source),
    "texts of a report": lambda path: len(read_texts(str(path), str(path), {"a": str(path)})),
    "n-best list of Moses": moses,
    "evidence map": rows(read_evidence_map),
}
TRAINING: dict[str, Callable[[Path], int]] = {
    "blocks": lambda path: sum(len(block.lines()) for block in iter_blocks(path)),
    "counted text": lambda path: count_words([path], 1)[1],
    "ids": lambda path: len(read_ids([path], SYMBOLS, 3, 1)[1]),
    "sentences of n-grams": lambda path: len(read_sentences([path], words())),
    "parallel text": lambda path: len(ParallelText.read(path, path, SYMBOLS, SYMBOLS).bitext.source),
}


@pytest.mark.parametrize("end", ENDS, ids=ascii)
@pytest.mark.parametrize("reader", [*LINES, *TRAINING])
def test_a_line_ends_nowhere_else(reader: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    path.write_bytes(f"a b\na{end}b\nb a\r\n".encode())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    if reader in TRAINING and end == "\r":
        with pytest.raises(DataError, match=r"text, line 2: expected a sentence, found a carriage return in 'a\\rb'"):
            TRAINING[reader](path)
    else:
        assert (LINES | TRAINING)[reader](path) == 3


@pytest.mark.parametrize("text", [b"a\rb\n", b"a\r\r\n", b"\ra\n", b"a\n\r\nb\rc", b"a\nb\r\r"])
@pytest.mark.parametrize("reader", TRAINING)
def test_training_texts_that_fairseq_would_shift_are_refused(reader: str, text: bytes, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(text)
    with open(tmp_path / "text", encoding="utf-8") as file:  # as fairseq-preprocess does
        assert len(list(file)) > text.count(b"\n") + (not text.endswith(b"\n"))
    with pytest.raises(DataError, match=r"fairseq-preprocess reads as its end; write a blank instead \(`tr"):
        TRAINING[reader](tmp_path / "text")


@pytest.mark.parametrize("text", [b"a\r\nb\r\n", b"a\nb\r", b"a\r\n\r\nb", b"\r\n"])
@pytest.mark.parametrize("reader", TRAINING)
def test_ends_of_dos_are_ends(reader: str, text: bytes, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(text)
    with open(tmp_path / "text", encoding="utf-8") as file:
        assert TRAINING[reader](tmp_path / "text") == len(list(file))
