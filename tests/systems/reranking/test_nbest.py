"""n-best lists: three formats in and out, in any order."""

import gzip
import json
import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_sentences import FAIRSEQ, JSON, LISTS, MOSES, UNIT, Open, failure

from fairseq_llrnn.systems.reranking.nbest import FORMATS, NBestFile, Ranked, open_nbest


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
    assert opened(FAIRSEQ).notes == {}
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


def test_features_of_moses_lists_have_names(opened: Open) -> None:
    lists = opened("0 ||| a ||| lm= -2 TM0= -3 -4.5 WordScores= 1 2 lm= 7 ||| -1\n")
    (nbest,) = lists
    expected = {"lm.1": -2, "lm.2": 7, "TM0.1": -3, "TM0.2": -4.5}
    assert nbest.hypotheses[0].features == expected and lists.features == tuple(expected)
    (nbest,) = opened("0 ||| a ||| d: 3 ||| -1\n")
    assert nbest.hypotheses[0].features == {"d": 3}
    (nbest,) = opened("0 ||| a ||| 3 4 ||| -1\n")
    assert nbest.hypotheses[0].features == {"feature.1": 3, "feature.2": 4}
    assert opened(FAIRSEQ).features == ()


def test_json_lists_may_have_no_scores(opened: Open) -> None:
    lists = opened('{"id": 0, "hypotheses": [{"text": "a"}, {"text": "b"}]}\n')
    assert not lists.scored
    assert [h.score for h in next(iter(lists)).hypotheses] == [None, None]


def test_gaps_and_sentences_without_hypotheses(opened: Open) -> None:
    lists = opened('{"id": 1, "hypotheses": []}\n{"id": 3, "hypotheses": [{"text": "a"}]}\n')
    assert (lists.sentences, lists.last) == (2, 3)
    assert lists.notes == {"sentences without hypotheses": 1}
    assert opened("S-0\tla mer\nS-1\tle roi\nH-1\t-1\tthe king").notes == {"sentences without hypotheses": 1}


def test_a_pipe_can_be_read_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(MOSES.encode()),))
    writer.start()
    lists = open_nbest(pipe)
    writer.join()
    assert texts(lists) == texts(lists) != []


WORDS_ALONE = ["the sea .", "a sea ."]
MARKED = {
    "moses": (
        "0 ||| the |0-0| sea . |1-2| ||| LM= -4 ||| -2 ||| 0=0\n"
        "0 ||| a sea |0-1,wa=0-0 1-1,total=-2.5,LM0= -3.2 TM0= -1 -2| . |2-2| ||| LM= -4 ||| -3 ||| 0=0\n"
    ),
    "moses with ends": (
        "0 ||| <s> |0-0| the sea . |1-2| </s> |3-3| ||| LM= -4 ||| -2\n0 ||| a sea . </s> ||| LM= -4 ||| -3\n"
    ),
    "fairseq": (
        "H-0\t-1\tthe |0-0| sea . </s>\nD-0\t-1\tthe |0-0| sea . </s>\nH-0\t-2\ta sea . </s>\nD-0\t-2\ta sea . </s>\n"
    ),
    "json": (
        '{"id": 0, "hypotheses": [{"text": "the sea |0-1,wa=0-0| . </s>", "score": -1}, '
        '{"text": " <s> a sea . |0-2|", "score": -2}]}\n'
    ),
}  # fmt: skip


MARKS = "hypotheses with marks of a decoder (such as |0-1|, |UNK, </s>), which are removed; <UNK> is read as <unk>"
FACTORS = "hypotheses with factors (word|FACTOR): only the first one is read, which should be the word"
BARS = "hypotheses with `|` within some words, read as part of them; remove factors and marks, if they are any"


@pytest.mark.parametrize("name", MARKED)
def test_marks_of_decoders_are_no_words(opened: Open, name: str) -> None:
    lists = opened(MARKED[name])
    assert texts(lists) == texts(lists) == [(0, WORDS_ALONE)]
    assert [h.text for nbest in lists for h in nbest.hypotheses] == WORDS_ALONE
    assert lists.notes == {MARKS: 2} and lists.first == {MARKS: 1}
    again = opened(reranked(lists).replace("llrnn_", "other_"))
    assert texts(again) == [(0, WORDS_ALONE[::-1])] and not again.notes


@pytest.mark.parametrize(
    "text", ["| a | |b|", "a |0-1", "|a-b| c", "</s> a", "a <s>", "a </s> b", "a&#124;0-1&#124;"]
)
def test_other_bars_and_signs_stay(opened: Open, text: str) -> None:
    lists = opened(json.dumps({"id": 0, "hypotheses": [{"text": text}]}))
    assert texts(lists) == [(0, [text])] and not lists.notes


UNKNOWN = {
    "Moses": "a petit|UNK|UNK|UNK sea",
    "Moses, two factors": "a petit|UNK sea",
    "Moses, -mark-unknown": "a UNKpetitUNK sea",
    "Joshua": "a petit_OOV sea",
    "start, end and padding": "<bos> a petit sea </s> <pad> <pad>",
    "T2T": "a petit sea <EOS> <pad>",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_words_that_a_system_did_not_translate(opened: Open, name: str) -> None:
    lists = opened(f"0 ||| the sea ||| -1\n0 ||| {UNKNOWN[name]} ||| -2\n")
    assert texts(lists) == [(0, ["the sea", "a petit sea"])]
    assert lists.notes == {MARKS: 1}
    assert "0 ||| a petit sea |||" in reranked(lists)


@pytest.mark.parametrize("mark", ["⁇", "<UNK>", "<<unk>>", "[UNK]", "<unk>"])
def test_unknown_words_of_other_systems_are_ours(opened: Open, mark: str) -> None:
    lists = opened(f"H-0\t-1\tthe {mark} sea\nH-1\t-1\t{mark}\n")
    assert [h.text for nbest in lists for h in nbest.hypotheses] == ["the <unk> sea", "<unk>"]
    assert lists.notes == ({} if mark == "<unk>" else {MARKS: 2})


FACTORED = {
    "two": "0 ||| la|DET mer|NOUN ||| -1\n0 ||| le|DET roi|NOUN .|PUNCT ||| -2\n",
    "three": "0 ||| la|le|DET |0-0| mer|mer|NOUN |1-1| ||| -1\n0 ||| <s> le|le|DET roi|roi|NOUN .|.|P </s> ||| -2\n",
    "untranslated words": "0 ||| la|DET mer|UNK|UNK|UNK ||| -1\n0 ||| le|DET roi|UNK .|PUNCT ||| -2\n",
    "json": '{"id": 0, "hypotheses": [{"text": "la|D mer|N"}, {"text": "le|D roi|N .|P"}]}',
}


@pytest.mark.parametrize("name", FACTORED)
def test_the_first_factor_is_the_word(opened: Open, name: str) -> None:
    lists = opened(FACTORED[name])
    assert texts(lists) == texts(lists) == [(0, ["la mer", "le roi ."])]
    assert [h.text for nbest in lists for h in nbest.hypotheses] == ["la mer", "le roi ."]
    assert (lists.notes[FACTORS], lists.notes[BARS]) == (2, 0)
    assert "|D" not in reranked(lists)


@pytest.mark.parametrize("text", ["a|b", "la|DET mer", "la|DET mer|NOUN|fem", "a|0-1|b"])
def test_bars_that_are_no_factors_stay_and_are_counted(opened: Open, text: str) -> None:
    lists = opened(f"0 ||| {text} ||| -2\n")
    assert texts(lists) == [(0, [text])]
    assert lists.notes == {BARS: 1} and lists.first == {BARS: 1}


@pytest.mark.parametrize("text", ['<n translation="x">', "<b/>", "a</np>", "<np translation='x' prob='0.8'>a</np>"])
def test_xml_tags_are_counted(opened: Open, text: str) -> None:
    lists = opened(f"H-0\t-1\tmer\nH-1\t-1\tla {text} mer\n")
    assert lists.notes == {"hypotheses with XML tags, read as words; remove them": 1}
    assert set(lists.first.values()) == {2}


@pytest.mark.parametrize("text", ["<num> a < b > c", "<2fr> la", "<unk>", "a <= b", "<pad/ x", "le </s> roi"])
def test_other_brackets_are_words(opened: Open, text: str) -> None:
    assert not opened(f"H-0\t-1\t{text}\n").notes


@pytest.mark.parametrize(
    ("before", "features"),
    [
        ("WordScores= -0.5 -1.5 |||", "F0= -2"),
        ("0-0 1-1 |||", "F0= -2"),
        ("0-0 ||| WordScores= -0.5 |||", "F0= -2"),
        ("0.9,0.1 0.5,0.5 |||", "F0= -2"),
        ("||| WordScores= |||", "F0= -2"),
        ("", "F0= -2 F1= -3 WordScores= -0.5 -1.5"),
    ],
)  # fmt: skip
def test_lists_of_marian(opened: Open, before: str, features: str) -> None:
    """Alignments (hard, soft, of an empty hypothesis) and word scores, of which every line has its own number."""
    others = before.replace("-1.5", "-1.5 -1").replace("0-0", "0-0 2-2"), features.replace("-1.5", "-1.5 -1")
    lists = opened(f"0 ||| the sea ||| {before} {features} ||| -1\n0 ||| a ||| {others[0]} {others[1]} ||| -2e0\n")
    hypotheses = next(iter(lists)).hypotheses
    assert [(h.text, h.score) for h in hypotheses] == [("the sea", -1.0), ("a", -2.0)]
    ours = "llrnn_model= -3.000000 llrnn_lm= -1.000000 ||| -8.000000"
    middle = f"||| {before} " if before else "||| "
    assert reranked(lists).splitlines()[1].split() == f"0 ||| the sea {middle}{features} {ours}".split()


# ---- order ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True))
def test_any_order_becomes_that_of_the_numbers(tmp_path_factory: pytest.TempPathFactory, numbers: list[int]) -> None:
    scratch = tmp_path_factory.mktemp("sort")
    (scratch / "list").write_text("".join(f"H-{n}\t-1\tw{n}\nH-{n}\t-2\tv{n}\n" for n in numbers), encoding="utf-8")
    lists = open_nbest(scratch / "list")
    assert texts(lists) == [(n, [f"w{n}", f"v{n}"]) for n in sorted(numbers)]
    assert [path.name for path in scratch.iterdir()] == ["list"]


def test_a_sentence_takes_little_memory(tmp_path: Path) -> None:
    """Where it lies is in memory, and not what it says."""

    def peak(sentences: int) -> int:
        path = tmp_path / "list"
        with path.open("w", encoding="utf-8") as file:
            for n in reversed(range(sentences)):
                file.writelines(f"H-{n}\t-1\t{'word ' * 50}\n" for _ in range(5))
        tracemalloc.start()
        assert sum(len(nbest.hypotheses) for nbest in open_nbest(path)) == 5 * sentences
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(100)
    assert peak(1600) - peak(400) < 1200 * 300  # bytes of where it lies; a sentence has 1,300


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
        "S-1\tle roi", "T-1\tthe king", "H-1\t-10.098865\ta king", "D-1\t-10.098865\ta king", "P-1\t-1.0000 -1.5000",
        "F-1\tllrnn_model=-2.885390 llrnn_lm=-1.442695", "H-1\t-11.541560\tth@@ e king", "D-1\t-11.541560\tthe king",
        "P-1\t-0.2000 -0.8000", "A-1\t0-0 1-1", "F-1\tllrnn_model=-4.328085 llrnn_lm=-1.442695",
    ]  # fmt: skip


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
    assert "found the score 'llrnn_model' of an earlier `llrnn rescore`; give the original list" in said
