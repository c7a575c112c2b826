"""Blocks of a text contain its lines. Several processes give the same results and errors as one, in order."""

import gzip
import io
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import worker_functions
from binary_texts import write_binary_text
from worker_functions import heavy_modules, killed, pid

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files import processes, text_blocks
from fairseq_llrnn.files.binary_text import KINDS, read_binary_text
from fairseq_llrnn.files.processes import ordered, serve
from fairseq_llrnn.files.text_blocks import Block, iter_blocks, map_blocks
from fairseq_llrnn.files.text_lines import MAX_LINE_BYTES, iter_lines

TEXT = "\ufeffété\r\n\nà\u2028b \t\n" + "x y\n" * 50 + "last"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(worker_functions.__file__).parent))
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 20)


@pytest.mark.parametrize("pack", [bytes, lambda raw: gzip.compress(raw, mtime=0)], ids=["plain", "gzip"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_blocks_are_the_lines(tmp_path: Path, pack: Callable[[bytes], bytes], end: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(pack((TEXT + end).encode()))
    blocks = list(iter_blocks(path))
    assert len(blocks) > 5
    assert [line for block in blocks for line in block.lines()] == list(iter_lines(path))
    assert sum(block.num_lines for block in blocks) == len(list(iter_lines(path)))
    assert sum(block.read for block in blocks) == path.stat().st_size


def test_a_pipe_will_do(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"a b\n" * 20,))
    writer.start()
    assert "".join(map_blocks(Block.text, [pipe], "reading", workers=1)) == "a b\n" * 20
    writer.join()


def test_several_processes_give_what_one_gives(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"{i} {i * i}\n" for i in range(200)))
    (tmp_path / "b").write_bytes(gzip.compress(b"c d\n" * 100))
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "a"]
    alone = list(map_blocks(Block.text, paths, "reading", workers=1))
    assert list(map_blocks(Block.text, paths, "reading", workers=3)) == alone
    assert len(alone) > 100


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("l'été".encode("latin-1"), r"text, line 61, byte 3: expected UTF-8, found the byte 0xe9 .*convert the text"),
        (b"x" * (MAX_LINE_BYTES + 1), r"text, line 61: the line has more than 1,048,576 bytes; expected one short"),
    ],
)
def test_the_first_bad_line_is_named(tmp_path: Path, workers: int, bad: bytes, message: str) -> None:
    (tmp_path / "text").write_bytes(b"good\n" * 60 + bad + b"\n" + b"\xff\n" * 10)
    with pytest.raises(DataError, match=message):
        list(map_blocks(Block.text, [tmp_path / "text"], "reading", workers))


def test_a_packed_file_that_ends_early_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_bytes(gzip.compress(os.urandom(9999).hex().encode())[:-20])
    with pytest.raises(DataError, match=r"text.gz: expected a whole gzip file, found"):
        list(map_blocks(Block.text, [tmp_path / "text.gz"], "reading", 1))
    with pytest.raises(DataError, match=r"missing: cannot be read: No such file"):
        list(map_blocks(Block.text, [tmp_path / "missing"], "reading", 1))


def test_workers_import_what_they_need_and_no_more() -> None:
    found = list(ordered(heavy_modules, iter(range(9)), 2))
    assert found == [(one, []) for one in range(9)]


def test_a_worker_that_is_killed_is_told() -> None:
    with pytest.raises(DataError, match=r"a process .* ended \(status -9\), perhaps .*--set workers=1"):
        list(ordered(killed, iter(range(9)), 2))


def test_a_process_ends_where_a_killed_one_has_written_half_an_input() -> None:
    whole = pickle.dumps("a block of a text")
    for given in (whole[:-3], whole[:2], b""):
        answers = io.BytesIO()
        serve(io.BytesIO(pickle.dumps(len) + whole + given), answers)
        assert pickle.loads(answers.getvalue()) == (False, 17)


def test_processes_end_with_the_last_result() -> None:
    results = ordered(pid, iter(range(50)), 2)
    found = {next(results)[1] for _ in range(20)}
    del results
    assert os.getpid() not in found
    for number in found:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_few_inputs_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {number for _, number in ordered(pid, iter(range(processes.FEW - 1)), 8)} == {os.getpid()}


# Texts of fairseq-preprocess, as bytes that stand here; tests of `llrnn prior` read fairseq's own
SENTENCES = [[4, 5, 2], [2], [6, 2]]


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_of_every_kind_of_number(tmp_path: Path, kind: int) -> None:
    tokens, lengths = read_binary_text(write_binary_text(tmp_path / "train", SENTENCES, kind), 7)
    assert (tokens.tolist(), lengths.tolist()) == ([4, 5, 2, 2, 6, 2], [3, 1, 2])


def test_what_is_no_such_text(tmp_path: Path) -> None:
    prefix = write_binary_text(tmp_path / "train", SENTENCES)
    with pytest.raises(DataError, match=r"train\.bin: expected numbers of the 6 words of its dictionary, found 6; run"):
        read_binary_text(prefix, 6)
    index, text = (Path(f"{prefix}.{end}") for end in ("idx", "bin"))
    whole = index.read_bytes()
    text.write_bytes(text.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"train\.bin: expected 6 tokens, as in its index, found a shorter file; run"):
        read_binary_text(prefix, 7)
    for content in (whole[:-1], whole[:20], b"", b"x" + whole[1:], whole[:17] + b"\x06" + whole[18:]):
        index.write_bytes(content)
        with pytest.raises(DataError, match=r"train\.idx: expected the index of a memory-mapped dataset, found some"):
            read_binary_text(prefix, 7)
    with pytest.raises(DataError, match="expected the index"):
        read_binary_text(tmp_path / "no", 7)
