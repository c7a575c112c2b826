"""Every way in which an n-best list cannot be used."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_sentences import LISTS, MOSES, Open, failure

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.reranking.nbest import NBest, NBestFile, open_nbest


@pytest.mark.parametrize("content", [b"", b"\n \n", gzip.compress(b"", mtime=0)], ids=["none", "blank", "gzip"])
def test_an_empty_list(opened: Open, content: bytes) -> None:
    said = failure(opened, content)
    assert said.startswith("expected an n-best list, with lines such as `H-12<TAB>-0.53<TAB>a hypothesis`")
    assert said.endswith("found an empty file; is it the right file?")
    assert failure(opened, content, "moses").endswith("of Moses, found no sentence; is it the right file?")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("two men are\n", "found lines like 'two men are'; is it the right file?"),
        ("S-0\tla mer\nS-1\tle roi\n", "found 2 sentences without any hypothesis; is it the right file?"),
        ("0 ||| a ||| -1\n123456 ||| b ||| -1\n", "expected sentence numbers from 0 without large gaps, found 2 "
         "sentences and 123,456 as the largest number; number them like the lines of the source"),
    ],
)  # fmt: skip
def test_another_kind_of_file(opened: Open, text: str, says: str) -> None:
    said = failure(opened, text)
    assert said.endswith(says) and (said == says or says.startswith("found"))


def test_another_encoding(opened: Open) -> None:
    said = failure(opened, "0 ||| été ||| -1\n".encode("latin-1"))
    assert said.startswith("line 1, byte 7: expected UTF-8, found the byte 0xe9")
    with pytest.raises(DataError, match="no-such-list: cannot be read: No such file"):
        open_nbest("/no-such-list")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 ||| a ||| -1\n1 ||| b ||| -1\n0 ||| c ||| -1\n",
         "line 3: sentence 0 is repeated (it was there from line 1 on)"),
        ('{"id": 3, "hypotheses": []}\n{"id": 3, "hypotheses": [{"text": "a"}]}\n',
         "line 2: sentence 3 is repeated (it was there from line 1 on)"),
        ("H-0\t-1\ta\nH-1\t-1\tb\nH-0\t-1\tc\n",
         "line 3: sentence 0 is repeated (it was there from line 1 on)"),
        ("S-0\ta\nH-0\t-1\ta\nS-0\ta\nH-0\t-1\tc\n",
         "line 3: sentence 0 begins a second time; expected each number once"),
        ("S-0\ta\nS-0\ta\nH-0\t-1\tc\n", "line 2: sentence 0 begins a second time; expected each number once"),
        ("H-0\t-1 a\n", "line 1: expected H-N<TAB>score<TAB>text, found 'H-0\\t-1 a'; fix the line"),
        ("H-0\t-1,5\ta\n", "line 1: expected a finite number as score, found '-1,5'; fix the line"),
        ("H-0\tnan\ta\n", "line 1: expected a finite number as score, found 'nan'; fix the line"),
        ("H-0\t-inf\ta\n", "line 1: expected a finite number as score, found '-inf'; fix the line"),
        ("D-0\t-1\ta\n", "line 1: expected an H- line of sentence 0 before 'D-0\\t-1\\ta'; fix the list"),
        ("H-0\t-1\ta\nH-1\t-1\ta\nP-2\t-1\n", "line 3: expected an H- line of sentence 2 before"),
        ("H-0\t-1\ta\nD-0\t-1\ta\nD-0\t-1\ta\n", "line 3: expected one D- line after each H- line, found another"),
        ("0 ||| a\n", "line 1: expected `id ||| hypothesis ||| … ||| total`, found '0 ||| a'; fix the line"),
        ("x ||| a ||| -1\n", "line 1: expected a sentence's number (0, 1, …) as id, found 'x'; fix the line"),
        ("-1 ||| a ||| -1\n", "line 1: expected a sentence's number (0, 1, …) as id, found '-1'; fix the line"),
        ("² ||| a ||| -1\n", "line 1: expected a sentence's number (0, 1, …) as id, found '²'; fix the line"),
        ("0 ||| a ||| LM= -1\n", "line 1: expected a finite number as total, found 'LM= -1'; fix the line"),
        ("0 ||| a ||| LM= x ||| -1\n",
         "line 1: expected a finite number as value of a feature, found 'x'; fix the line"),
        ("0 ||| a ||| -1\n0 ||| a ||| L= 1 ||| -1\n", "line 2: expected 3 fields, as in the first line, found 4; fix"),
        ("0 ||| a ||| L= 1 ||| -1\n1 ||| a ||| L= 1 2 ||| -1\n",
         "line 2: expected the features of the first line ('L×1'), found 'L×2'; give every line the same ones"),
        ("0 ||| a ||| L= 1 ||| -1\n1 ||| a ||| M= 1 ||| -1\n",
         "line 2: expected the features of the first line ('L×1')"),
        ('{"id": 0, "hypotheses": [{"text": "a", "score": 1}, {"text": "b"}]}',
         "line 1: expected hypotheses with score, like the first one, found one with text alone; give the same ones"),
        ('{"id": 0, "hypotheses": [{"text": "a"}]}\n{"id": 1, "hypotheses": [{"text": "b", "features": {"lm": 1}}]}',
         "line 2: expected hypotheses with text alone, like the first one, found one with feature 'lm'; give"),
    ],
)  # fmt: skip
def test_lines_that_cannot_be_read(opened: Open, text: str, says: str) -> None:
    assert failure(opened, text, "json" if text.startswith("{") else None).startswith(says)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": 0', "Invalid JSON: EOF while parsing an object at column 8"),
        ("[1]", "Input should be an object"),
        ("{" + '"a":{' * 100_000, "Invalid JSON: recursion limit exceeded at column 1006"),
        ('{"id": 0}', "hypotheses: Field required"),
        ('{"id": "0", "hypotheses": []}', "id: Input should be a valid integer"),
        ('{"id": true, "hypotheses": []}', "id: Input should be a valid integer"),
        ('{"id": -1, "hypotheses": []}', "id: Input should be greater than or equal to 0"),
        ('{"id": 0, "source": 1, "hypotheses": []}', "source: Input should be a valid string"),
        ('{"id": 0, "hypotheses": ["a"]}', "hypotheses.0: Input should be an object"),
        ('{"id": 0, "hypotheses": [{"text": "a\\nb"}]}',
         "hypotheses.0.text: String should match pattern '^[^\\r\\n]*$'"),
        ('{"id": 0, "hypotheses": [{"text": "\\ud800"}]}', "Invalid JSON: unexpected end of hex escape at column 42"),
        ('{"id": 0, "hypotheses": [{"text": "a", "score": NaN}]}',
         "hypotheses.0.score: Input should be less than or equal to 1000000000000"),
        ('{"id": 0, "hypotheses": [{"text": "a", "score": "1"}]}',
         "hypotheses.0.score: Input should be a valid number"),
        ('{"id": 0, "hypotheses": [{"text": "a", "score": 1' + "0" * 400 + "}]}",
         "hypotheses.0.score: Input should be less than or equal to 1000000000000"),
        ('{"id": 0, "hypotheses": [{"text": "a", "features": [1]}]}',
         "hypotheses.0.features: Input should be an object"),
        ('{"id": 0, "hypotheses": [{"text": "a"}, {"text": "a", "features": {"lm": null}}]}',
         "hypotheses.1.features.lm: Input should be a valid number"),
    ],
)  # fmt: skip
def test_json_lines_that_cannot_be_read(opened: Open, text: str, reason: str) -> None:
    said = failure(opened, '{"id": 9, "hypotheses": []}\n' + text, "json")
    assert said.startswith('line 2: expected lines such as `{"id": 12, "hypotheses": [{"text": "a hypothesis", ')
    assert said.endswith(f" ({reason}); fix the line")


def test_no_room_for_the_copy(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(NBestFile, "add", full)
    assert failure(opened, MOSES) == (
        "the copy of the list in the folder for temporary files cannot be written (No space left on device); check the "
        "rights and the free space there, or set TMPDIR to another folder"
    )


def test_a_forced_format(opened: Open) -> None:
    assert failure(opened, MOSES, "json").startswith("line 1: expected lines such as `{")
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
        sentences: list[NBest] = list(open_nbest(path))
    except DataError as error:
        assert str(error).startswith(str(path)) and len(str(error)) < 700 + len(str(path))
    else:
        numbers = [nbest.number for nbest in sentences]
        assert numbers == sorted(set(numbers))
