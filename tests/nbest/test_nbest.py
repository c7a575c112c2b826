"""n-best lists: three formats in and out, in any order, and every way in which a list cannot be used."""

import gzip
import json
import math
import os
import re
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.nbest import FORMATS, NBest, NBestFile, Ranked, open_nbest, reading

# Two sentences of two hypotheses, in the order in which fairseq-generate may print them.
FAIRSEQ = """\
2026-11-21 12:00:00 | INFO | fairseq_cli.generate | {'_name': None}
S-1\tle roi
T-1\tthe king
H-1\t-0.5\tth@@ e king
D-1\t-0.5\tthe king
P-1\t-0.2000 -0.8000
A-1\t0-0 1-1
H-1\t-1.25\ta king
D-1\t-1.25\ta king
P-1\t-1.0000 -1.5000
S-0\tla mer
T-0\tthe sea
H-0\t-2.0\tthe sea
D-0\t-2.0\tthe sea
P-0\t-2.0000
H-0\t-3.0\t
D-0\t-3.0\t
P-0\t-3.0000
Generate test with beam=2: BLEU4 = 12.34, 50.0/20.0 (BP=1.000)
"""
MOSES = """\
0 ||| the sea ||| LM= -3.5 TM= -1 -2 w=2 ||| -2.0 ||| 0=0
0 ||| ||| LM= -4 TM= -1 -3 w=0 ||| -3.0 ||| 0=0
1 ||| the king ||| LM= -5 TM= 0 -1e-3 w=2 ||| -0.5 ||| 0=0
1 ||| a king ||| LM= -6 TM= 0 0 w=2 ||| -1.25 ||| 0=0
"""
JSON = """\
{"id": 0, "source": "la mer", "hypotheses": [{"text": "the sea", "score": -2, "features": {"lm": -3.5}}, \
{"text": "", "score": -3.0, "features": {"lm": -4}}], "domain": "test"}
{"id": 1, "source": "le roi", "hypotheses": [{"text": "the king", "score": -0.5, "features": {"lm": -5}, "steps": 3}, \
{"text": "a king", "score": -1.25, "features": {"lm": -6}}]}
"""
LISTS = {"fairseq": FAIRSEQ, "moses": MOSES, "json": JSON}
UNIT = {"fairseq": math.log(2), "moses": 1.0, "json": 1.0}

Open = Callable[..., NBestFile]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Write a list and open it."""

    def run(text: str | bytes, format_name: str | None = None) -> NBestFile:
        path = tmp_path / "list"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return open_nbest(path, tmp_path, format_name)

    return run


def failure(opened: Open, text: str | bytes, format_name: str | None = None) -> str:
    """What is said of a list, without its path."""
    with pytest.raises(DataError) as error:
        opened(text, format_name)
    assert "/list" in str(error.value)
    return re.sub(r"^\S*/list(, |: )?", "", str(error.value))


def texts(lists: NBestFile) -> list[tuple[int, list[str]]]:
    return [(nbest.number, [h.output for h in nbest.hypotheses]) for nbest in lists]


# ---- reading --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LISTS)
def test_formats_are_told_by_their_lines_and_read_alike(opened: Open, name: str) -> None:
    for content in (LISTS[name], LISTS[name].replace("\n", "\r\n"), gzip.compress(LISTS[name].encode())):
        lists = opened(content)
        assert lists.format is FORMATS[name]
        assert (lists.sentences, lists.hypotheses, lists.last, lists.scored) == (2, 4, 1, True)
        assert texts(lists) == texts(lists) == [(0, ["the sea", ""]), (1, ["the king", "a king"])]
        scores = [h.score for nbest in lists for h in nbest.hypotheses]
        assert scores == pytest.approx([x * UNIT[name] for x in (-2, -3, -0.5, -1.25)])
    assert texts(opened(LISTS[name], name)) == texts(lists)


def test_models_read_the_h_line_and_people_the_d_line(opened: Open) -> None:
    best = list(opened(FAIRSEQ))[1].hypotheses[0]
    assert (best.text, best.output) == ("th@@ e king", "the king")
    best = list(opened(FAIRSEQ.replace("D-", "E-")))[1].hypotheses[0]
    assert best.output == "th@@ e king"


def test_sources(opened: Open) -> None:
    assert [nbest.source for nbest in opened(FAIRSEQ)] == ["la mer", "le roi"]
    assert [nbest.source for nbest in opened(JSON)] == ["la mer", "le roi"]
    assert opened(JSON).has_sources and opened(FAIRSEQ).has_sources
    assert not opened(MOSES).has_sources
    assert not opened(FAIRSEQ.replace("S-1\tle roi\n", "")).has_sources


def test_a_real_generation_order_is_no_news_but_others_are_counted(opened: Open) -> None:
    assert opened(FAIRSEQ).notes == {"lines that are no part of the list (logs), skipped": 2}
    assert opened(MOSES).notes == {}
    rows = JSON.splitlines(keepends=True)
    lists = opened(rows[1] + rows[0])
    assert lists.notes == {"sentences out of order, sorted by their numbers": 1}
    assert texts(lists) == texts(opened(JSON))


def test_interactive_output(opened: Open) -> None:
    lines = "S-0\tla mer\nW-0\t0.1\tseconds\nC-0\tsea\nH-0\t-1\tthe sea\nD-0\t-1\tthe sea\nP-0\t-1\nE-0_1\tsea\n"
    lists = opened(lines)
    assert texts(lists) == [(0, ["the sea"])]
    assert lists.notes == {}


def test_moses_lists_may_have_no_features_or_unnamed_ones(opened: Open) -> None:
    assert texts(opened("0 ||| a ||| -1\n\n0|||b|||-2")) == [(0, ["a", "b"])]
    assert texts(opened("0 ||| a ||| ||| -1\n")) == [(0, ["a"])]
    assert texts(opened("0 ||| a ||| -2 -3 ||| -1\n0 ||| b ||| 2 3 ||| -1\n")) == [(0, ["a", "b"])]
    assert texts(opened("0 ||| a ||| lm: -2 tm: -3 ||| -1\n")) == [(0, ["a"])]


def test_json_lists_may_have_no_scores(opened: Open) -> None:
    lists = opened('{"id": 0, "hypotheses": [{"text": "a"}, {"text": "b"}]}\n')
    assert not lists.scored
    assert [h.score for h in next(iter(lists)).hypotheses] == [None, None]


def test_gaps_and_sentences_without_hypotheses(opened: Open) -> None:
    lists = opened('{"id": 1, "hypotheses": []}\n{"id": 3, "hypotheses": [{"text": "a"}]}\n')
    assert (lists.sentences, lists.last) == (2, 3)
    assert lists.notes == {"sentences without hypotheses": 1}
    assert opened("S-0\tla mer\nS-1\tle roi\nH-1\t-1\tthe king").notes == {"sentences without hypotheses": 1}


def test_stdin_and_pipes_can_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(MOSES.encode()),))
    writer.start()
    lists = open_nbest(pipe, tmp_path)
    writer.join()
    assert texts(lists) == texts(lists) != []
    with (tmp_path / "in").open("w+b") as stdin:
        stdin.write(MOSES.encode())
        stdin.seek(0)
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": stdin}))
        lists = open_nbest("-", tmp_path)
    assert lists.name == "stdin"
    assert texts(lists) == texts(lists) != []


# ---- order ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True), run=st.integers(1, 6))
def test_any_order_becomes_that_of_the_numbers(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], run: int
) -> None:
    scratch = tmp_path_factory.mktemp("sort")
    (scratch / "list").write_text("".join(f"H-{n}\t-1\tw{n}\nH-{n}\t-2\tv{n}\n" for n in numbers), encoding="utf-8")
    before, reading.RUN = reading.RUN, run
    try:
        lists = open_nbest(scratch / "list", scratch)
    finally:
        reading.RUN = before
    assert texts(lists) == [(n, [f"w{n}", f"v{n}"]) for n in sorted(numbers)]
    assert {path.name for path in scratch.iterdir()} <= {"list", "sorted"}


def test_memory_does_not_grow_with_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "RUN", 200)

    def peak(sentences: int) -> int:
        path = tmp_path / "list"
        with path.open("w", encoding="utf-8") as file:
            for n in reversed(range(sentences)):
                file.writelines(f"H-{n}\t-1\t{'word ' * 50}\n" for _ in range(5))
        tracemalloc.start()
        assert sum(len(nbest.hypotheses) for nbest in open_nbest(path, tmp_path)) == 5 * sentences
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(100)
    assert peak(1600) < 1.3 * peak(400)


# ---- writing --------------------------------------------------------------------------------------------------------


def reranked(lists: NBestFile) -> str:
    """The list backwards, with a score of ours."""
    lines = []
    for nbest in lists:
        ranked = [Ranked(h, {"model": -2.0 - i, "lm": -1.0}, -7.0 - i) for i, h in enumerate(nbest.hypotheses[::-1])]
        lines += lists.format.write(nbest, ranked)
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize("name", LISTS)
def test_a_reranked_list_has_the_format_of_the_old_one(opened: Open, name: str) -> None:
    text = reranked(opened(LISTS[name]))
    again = opened(text.replace("llrnn_", "other_"))
    assert again.format is FORMATS[name]
    assert texts(again) == [(0, ["", "the sea"]), (1, ["a king", "the king"])]
    scores = [h.score for nbest in again for h in nbest.hypotheses]
    assert scores == pytest.approx([-7.0, -8.0, -7.0, -8.0], abs=1e-5)


def test_a_reranked_fairseq_list(opened: Open) -> None:
    assert reranked(opened(FAIRSEQ)).splitlines()[10:] == [
        "S-1\tle roi",
        "T-1\tthe king",
        "H-1\t-10.098865\ta king",
        "D-1\t-10.098865\ta king",
        "P-1\t-1.0000 -1.5000",
        "F-1\tllrnn_model=-2.885390 llrnn_lm=-1.442695",
        "H-1\t-11.541560\tth@@ e king",
        "D-1\t-11.541560\tthe king",
        "P-1\t-0.2000 -0.8000",
        "A-1\t0-0 1-1",
        "F-1\tllrnn_model=-4.328085 llrnn_lm=-1.442695",
    ]


def test_a_reranked_moses_list(opened: Open) -> None:
    ours = "llrnn_model= -2.000000 llrnn_lm= -1.000000"
    assert reranked(opened(MOSES)).splitlines()[0] == f"0 |||  ||| LM= -4 TM= -1 -3 w=0 {ours} ||| -7.000000 ||| 0=0"
    assert reranked(opened("0 ||| a ||| -1\n")) == f"0 ||| a ||| {ours} ||| -7.000000\n"


def test_a_reranked_json_list_keeps_what_else_there_is(opened: Open) -> None:
    first, second = (json.loads(line) for line in reranked(opened(JSON)).splitlines())
    assert first["domain"] == "test"
    assert second["hypotheses"][1] == {
        "text": "the king", "score": -8.0, "steps": 3, "features": {"lm": -5, "llrnn_model": -3.0, "llrnn_lm": -1.0},
    }  # fmt: skip
    plain = reranked(opened('{"id": 0, "hypotheses": [{"text": "é"}]}'))
    assert plain == (
        '{"id": 0, "hypotheses": [{"text": "é", "score": -7.0, "features": {"llrnn_model": -2.0, "llrnn_lm": -1.0}}]}\n'
    )


@pytest.mark.parametrize("name", LISTS)
def test_a_rescored_list_is_not_rescored_again(opened: Open, name: str) -> None:
    said = failure(opened, reranked(opened(LISTS[name])))
    assert "found the score 'llrnn_model', which `llrnn rescore` has added; give the list as its system" in said


# ---- lists that cannot be used --------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"\n \n", gzip.compress(b"", mtime=0)], ids=["none", "blank", "gzip"])
def test_an_empty_list(opened: Open, content: bytes) -> None:
    said = failure(opened, content)
    assert said.startswith("expected an n-best list, with lines such as `H-12<TAB>-0.53<TAB>a hypothesis`")
    assert said.endswith("found an empty file; is it the right file?")
    assert failure(opened, content, "moses").endswith("of Moses, found no sentence; is it the right file?")


def test_another_kind_of_file(opened: Open) -> None:
    said = failure(opened, "two men are\n")
    assert said.endswith("found lines like 'two men are'; is it the right file?")


def test_no_hypothesis_at_all(opened: Open) -> None:
    said = failure(opened, "S-0\tla mer\nS-1\tle roi\n")
    assert said.endswith("found 2 sentences without any hypothesis; is it the right file?")


def test_another_encoding(opened: Open) -> None:
    said = failure(opened, "0 ||| été ||| -1\n".encode("latin-1"))
    assert said.startswith("line 1, byte 7: expected UTF-8, found the byte 0xe9")
    with pytest.raises(DataError, match="no-such-list: cannot be read: No such file"):
        open_nbest("/no-such-list", Path("/"))


def test_numbers_that_leave_most_sentences_out(opened: Open) -> None:
    assert failure(opened, "0 ||| a ||| -1\n123456 ||| b ||| -1\n") == (
        "expected numbers that count the sentences from 0, found 2 sentences, and 123,456 as the largest number; "
        "number them as the lines of the source"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 ||| a ||| -1\n1 ||| b ||| -1\n0 ||| c ||| -1\n",
         "line 3: sentence 0 comes a second time (it was there from line 1 on)"),
        ('{"id": 3, "hypotheses": []}\n{"id": 3, "hypotheses": [{"text": "a"}]}\n',
         "line 2: sentence 3 comes a second time (it was there just before)"),
        ("H-0\t-1\ta\nH-1\t-1\tb\nH-0\t-1\tc\n",
         "line 3: sentence 0 comes a second time (it was there from line 1 on)"),
        ("S-0\ta\nH-0\t-1\ta\nS-0\ta\nH-0\t-1\tc\n",
         "line 3: sentence 0 begins a second time; expected each number once"),
        ("S-0\ta\nS-0\ta\nH-0\t-1\tc\n", "line 2: sentence 0 begins a second time; expected each number once"),
    ],
)  # fmt: skip
def test_a_sentence_that_comes_twice(opened: Open, text: str, says: str) -> None:
    assert failure(opened, text).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("H-0\t-1 a\n", "line 1: expected H-N<TAB>score<TAB>text, found 'H-0\\t-1 a'; fix the line"),
        ("H-0\t-1,5\ta\n", "line 1: expected a finite number as score, found '-1,5'; fix the line"),
        ("H-0\tnan\ta\n", "line 1: expected a finite number as score, found 'nan'; fix the line"),
        ("H-0\t-inf\ta\n", "line 1: expected a finite number as score, found '-inf'; fix the line"),
        ("D-0\t-1\ta\n", "line 1: expected an H- line of sentence 0 before 'D-0\\t-1\\ta'; fix the list"),
        ("H-0\t-1\ta\nH-1\t-1\ta\nP-2\t-1\n", "line 3: expected an H- line of sentence 2 before"),
        ("H-0\t-1\ta\nD-0\t-1\ta\nD-0\t-1\ta\n", "line 3: expected one D- line after each H- line, found another"),
        ("H-0\t-1\ta\nD-0\t-1\ta\nH-1\t-1\ta\n", 
         "line 3: expected a D- line after every H- line, or after none; sentence 1"),
    ],
)  # fmt: skip
def test_fairseq_lines_that_cannot_be_read(opened: Open, text: str, says: str) -> None:
    assert failure(opened, text).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 ||| a\n", "line 1: expected `id ||| hypothesis ||| … ||| total`, found '0 ||| a'; fix the line"),
        ("x ||| a ||| -1\n", "line 1: expected a sentence's number (0, 1, …) as id, found 'x'; fix the line"),
        ("-1 ||| a ||| -1\n", "line 1: expected a sentence's number (0, 1, …) as id, found '-1'; fix the line"),
        ("² ||| a ||| -1\n", "line 1: expected a sentence's number (0, 1, …) as id, found '²'; fix the line"),
        ("0 ||| a ||| LM= -1\n", "line 1: expected a finite number as total, found 'LM= -1'; fix the line"),
        ("0 ||| a ||| LM= x ||| -1\n",
         "line 1: expected a finite number as value of a feature, found 'x'; fix the line"),
        ("0 ||| a ||| -1\n0 ||| a ||| L= 1 ||| -1\n", "line 2: expected 3 fields, as in the first line, found 4; fix"),
        ("0 ||| a ||| L= 1 ||| -1\n1 ||| a ||| L= 1 2 ||| -1\n",
         "line 2: expected the features of the first line ('L×1'), found 'L×2'; every line must have the same ones"),
        ("0 ||| a ||| L= 1 ||| -1\n1 ||| a ||| M= 1 ||| -1\n",
         "line 2: expected the features of the first line ('L×1')"),
    ],
)  # fmt: skip
def test_moses_lines_that_cannot_be_read(opened: Open, text: str, says: str) -> None:
    assert failure(opened, text).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"id": 0\n', "line 1: expected a JSON object, found '{\"id\": 0' ("),
        ('{"id": 0}\n[1]\n', "line 1: expected a list as hypotheses, found nothing; fix it"),
        ('{"id": 0, "hypotheses": []}\n[1]\n', "line 2: expected a JSON object, found '[1]'; fix the line"),
        ("{" + '"a":{' * 100_000, "line 1: expected a JSON object, found '{\"a\":{"),
        ('{"id": "0", "hypotheses": []}',
         "line 1: expected a sentence's number (0, 1, …) as id, found '\"0\"'; fix it"),
        ('{"id": true, "hypotheses": []}', "line 1: expected a sentence's number (0, 1, …) as id, found 'true'"),
        ('{"id": -1, "hypotheses": []}', "line 1: expected a sentence's number (0, 1, …) as id, found '-1'"),
        ('{"id": 0, "source": 1, "hypotheses": []}', "line 1: expected a text as source, found '1'; fix it"),
        ('{"id": 0, "hypotheses": ["a"]}',
         'line 1: expected hypotheses {"text": "a line of text", …}, found \'"a"\'; fix it'),
        ('{"id": 0, "hypotheses": [{"text": "a\\nb"}]}',
         'line 1: expected hypotheses {"text": "a line of text", …}, found'),
        ('{"id": 0, "hypotheses": [{"text": "\\ud800"}]}', "line 1: expected a JSON object, found"),
        ('{"id": 0, "hypotheses": [{"text": "a", "score": NaN}]}',
         "line 1: expected a finite number as score, found 'NaN'"),
        ('{"id": 0, "hypotheses": [{"text": "a", "score": "1"}]}', "line 1: expected a finite number as score, found"),
        ('{"id": 0, "hypotheses": [{"text": "a", "score": 1' + "0" * 400 + "}]}",
         "line 1: expected a finite number as score"),
        ('{"id": 0, "hypotheses": [{"text": "a", "features": [1]}]}',
         "line 1: expected numbers by name as features, found"),
        ('{"id": 0, "hypotheses": [{"text": "a", "features": {"lm": null}}]}',
         "line 1: expected a finite number as lm, found nothing; fix it"),
        ('{"id": 0, "hypotheses": [{"text": "a", "score": 1}, {"text": "b"}]}',
         "line 1: expected hypotheses with score, as the first one has, found one with text alone; every hypothesis"),
        ('{"id": 0, "hypotheses": [{"text": "a"}]}\n{"id": 1, "hypotheses": [{"text": "b", "features": {"lm": 1}}]}',
         "line 2: expected hypotheses with text alone, as the first one has, found one with feature 'lm'; every"),
    ],
)  # fmt: skip
def test_json_lines_that_cannot_be_read(opened: Open, text: str, says: str) -> None:
    assert failure(opened, text, "json").startswith(says)


def test_a_forced_format(opened: Open) -> None:
    assert failure(opened, MOSES, "json").startswith("line 1: expected a JSON object, found")
    assert failure(opened, MOSES, "fairseq").endswith("of fairseq-generate, found no sentence; is it the right file?")


BYTES = b'\t\n\r|=-.#0{}",:\xff'
SPOILT = st.sampled_from([bytes([byte]) for byte in BYTES] + [b"", b"|||", b"H-1", b"\xc2\x85", b'"id"'])


@settings(max_examples=200, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(LISTS)))
def test_a_list_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str) -> None:
    content = bytearray(LISTS[name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 3))] = data.draw(SPOILT)
    path = tmp_path_factory.getbasetemp() / "spoilt-list"
    path.write_bytes(content)
    try:
        sentences: list[NBest] = list(open_nbest(path, path.parent))
    except DataError as error:
        assert str(error).startswith(str(path)) and len(str(error)) < 700 + len(str(path))
    else:
        numbers = [nbest.number for nbest in sentences]
        assert numbers == sorted(set(numbers))
