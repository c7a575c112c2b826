"""Jobs, scores and ranks, with models whose scores are seen from the text."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.reranking import rescoring
from fairseq_llrnn.systems.reranking.metrics import CorpusMetric
from fairseq_llrnn.systems.reranking.rescoring import PENALTY, Job, Model, Weighing, _is_made_of, open_job, score_list
from fairseq_llrnn.systems.reranking.score_cache import ScoreFile

LIST = """\
0 ||| a b ||| -1
0 ||| c ||| -2
2 ||| dd ||| -3
3 ||| e f g ||| -4
3 ||| bad ||| -5
"""


class Letters:
    """Scores a hypothesis by minus its length, plus a hundredth of its source's; what is bad, not at all."""

    dictionaries: tuple[Path, ...] = ()
    prior: str | None = None

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()
        self.calls: list[tuple[list[str], list[str]]] = []

    def score(self, sources: Sequence[str] | None, hypotheses: Sequence[str]) -> list[float]:
        self.calls.append((list(sources or ()), list(hypotheses)))
        self.notes["words"] += len(hypotheses)
        pairs = zip(sources or (), hypotheses, strict=True)
        return [-math.inf if "bad" in h else len(s) / 100 - len(h) for s, h in pairs]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Five sentences, three with hypotheses."""
    (tmp_path / "list").write_text(LIST, encoding="utf-8")
    (tmp_path / "source").write_text("A\nBB\nCCC\nDDDD\nEEEEE\n", encoding="utf-8")
    (tmp_path / "reference").write_text("a b\n\ndd\ne f g\nx\n", encoding="utf-8")
    return open_job(*(str(tmp_path / name) for name in ("list", "source", "reference")))


# ---- jobs -----------------------------------------------------------------------------------------------------------


def test_a_job_has_every_sentence_of_the_source(job: Job) -> None:
    assert job.sentences == 5
    expected = [(0, "A", 2), (1, "BB", 0), (2, "CCC", 1), (3, "DDDD", 2), (4, "EEEEE", 0)]
    for _ in range(2):
        assert [(n.number, n.source, len(n.hypotheses)) for n in job] == expected


def test_without_a_source_it_ends_with_the_list(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("S-1\tBB\nH-1\t-1\tb\n", encoding="utf-8")
    job = open_job(str(tmp_path / "list"), None, None)
    assert [(n.number, n.source, len(n.hypotheses)) for n in job] == [(0, None, 0), (1, "BB", 1)]


SAME = {"a big dog , too": "A b@@ ig dog, ▁too", "a zebra here": "a <unk> here", "tab\tthe => x": "tab", "1 2": "<unk>"}


def test_the_file_of_sources_wins_over_the_list(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("\n".join([*SAME, "no hypotheses"]) + "\n", encoding="utf-8")
    lines = [f"S-{i}\t{line}\nH-{i}\t-1\tb\n" for i, line in enumerate(SAME.values())]
    (tmp_path / "list").write_text("".join(lines), encoding="utf-8")
    job = open_job(str(tmp_path / "list"), str(tmp_path / "source"), None)
    assert [nbest.source for nbest in job] == [*SAME, "no hypotheses"]


def test_unknown_words_of_a_source_may_be_any(tmp_path: Path) -> None:
    """However many they are: what tries all their places would not end."""
    for parts in itertools.product(["", "a", "b", "ab"], repeat=3):
        for text in map("".join, itertools.product("ab", repeat=4)):
            assert _is_made_of(parts, text) == bool(re.fullmatch(".*".join(parts), text)), (parts, text)
        assert _is_made_of(parts[:1], "a") == (parts[0] == "a")
    (tmp_path / "list").write_text("S-0\t" + "<unk> a " * 60 + "c\nH-0\t-1\tb\n", encoding="utf-8")
    (tmp_path / "source").write_text("a " * 200 + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="list: the source of sentence 0 is"):
        open_job(str(tmp_path / "list"), str(tmp_path / "source"), None)


@pytest.mark.parametrize("other", ["a big cat", "a big", "a big dog and more", "<unk> cat", ""])
@pytest.mark.parametrize(
    "written",
    ["S-1\t{0}\nH-1\t-1\tb\n", '{{"id": 1, "source": "{0}", "hypotheses": [{{"text": "b", "score": -1}}]}}\n'],
)
def test_a_source_of_another_list_is_refused(tmp_path: Path, other: str, written: str) -> None:
    (tmp_path / "list").write_text(written.format(other), encoding="utf-8")
    (tmp_path / "source").write_text("first\na big dog\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        open_job(str(tmp_path / "list"), str(tmp_path / "source"), None)
    assert str(error.value) == (
        f"{tmp_path}/list: the source of sentence 1 is {other!r}, but {tmp_path}/source has 'a big dog'; give the "
        "source of this list"
    )


@pytest.mark.parametrize(
    ("side", "lines", "says"),
    [
        ("source", 3, "list: expected sentences from 0 to 2, as many as {folder}/source has lines, found sentence 3; "
         "are its sentences counted from 1?"),
        ("source", 2, "list: expected sentences from 0 to 1, as many as {folder}/source has lines, found sentence 3; "
         "give the source of this list"),
        ("source", 0, "source: expected the source of {folder}/list, found no sentences; give another file"),
        ("reference", 1, "reference: expected 4 lines, one for each sentence of {folder}/list, found 1; give the "
         "reference of this text"),
    ],
)  # fmt: skip
def test_a_side_with_fewer_sentences(tmp_path: Path, side: str, lines: int, says: str) -> None:
    (tmp_path / "list").write_text(LIST, encoding="utf-8")
    (tmp_path / side).write_text("A\n" * lines, encoding="utf-8")
    sides = [str(tmp_path / side) if side == one else None for one in ("source", "reference")]
    with pytest.raises(DataError) as error:
        open_job(str(tmp_path / "list"), *sides)
    assert str(error.value) == f"{tmp_path}/{says.format(folder=tmp_path)}"


# ---- scores ---------------------------------------------------------------------------------------------------------


def scored(job: Job, path: Path, models: dict[str, Model]) -> ScoreFile:
    scores = ScoreFile(path, {})
    score_list(job, models, scores)
    return scores


@pytest.mark.parametrize("chunk", [1, 2, 1000])
def test_every_hypothesis_meets_its_source(
    job: Job, tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescoring, "CHUNK", chunk)
    models = {"model": Model(Letters()), "reverse": Model(Letters(), backwards=True)}
    scores = scored(job, tmp_path / "scores", models)
    assert list(scores) == [
        {"model": [0.01 - 3, 0.01 - 1], "reverse": [0.03 - 1, 0.01 - 1]},
        {"model": [], "reverse": []},
        {"model": [0.03 - 2], "reverse": [0.02 - 3]},
        {"model": [0.04 - 5, -math.inf], "reverse": [0.05 - 4, 0.03 - 4]},
        {"model": [], "reverse": []},
    ]
    assert scores.notes["model"] == {"words": 5}


def test_what_stands_behind_a_source_is_for_models_that_translate_it() -> None:
    for backwards, sources, hypotheses in ((False, ["ab\tb => c"], ["c"]), (True, ["c"], ["ab"])):
        scorer = Letters()
        Model(scorer, backwards).score(["ab\tb => c"], ["c"])
        assert scorer.calls == [(sources, hypotheses)]


# ---- weights --------------------------------------------------------------------------------------------------------


def test_the_features_and_their_sum(job: Job) -> None:
    weighing = Weighing.untuned(True, ["model"])
    assert weighing.names == ("list", "model", "words")
    assert weighing.weights.tolist() == [1, 1, 0]
    hypotheses = list(job)[3].hypotheses
    scores = {"model": [-4.5, -math.inf]}
    assert weighing.features(hypotheses, scores).tolist() == [[-4, -4.5, 3], [-5, PENALTY, 1]]
    first, second = weighing.rank(hypotheses, scores)
    assert (first.hypothesis.text, first.added, first.total) == ("e f g", {"model": -4.5}, -8.5)
    assert (second.hypothesis.text, second.added, second.total) == ("bad", {"model": PENALTY}, PENALTY - 5)
    turned = Weighing(weighing.names, np.array([0.0, 0.0, -1.0])).rank(hypotheses, scores)
    assert [ranked.hypothesis.text for ranked in turned] == ["bad", "e f g"]


def test_features_of_the_list(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(
        '{"id": 0, "hypotheses": [{"text": "b", "features": {"lm": -2, "model": 7}}, '
        '{"text": "a", "features": {"model": 8, "lm": -1.5}}]}\n{"id": 2, "hypotheses": []}\n',
        encoding="utf-8",
    )
    (tmp_path / "reference").write_text("a\n\nb\n", encoding="utf-8")
    job = open_job(str(tmp_path / "list"), None, str(tmp_path / "reference"))
    assert job.lists.features == ("lm", "model")
    weighing = Weighing.untuned(False, ["model"], ["lm"])
    assert (weighing.names, weighing.weights.tolist()) == (("model", "list.lm", "words"), [1, 1, 0])
    first, *others = job
    scores = {"model": [-1.0, -2.0]}
    assert weighing.features(first.hypotheses, scores).tolist() == [[-1, -2, 1], [-2, -1.5, 1]]
    ranked = weighing.rank(first.hypotheses, scores)
    assert [(r.hypothesis.text, r.added, r.total) for r in ranked] == [
        ("b", {"model": -1}, -3), ("a", {"model": -2}, -3.5)
    ]  # fmt: skip
    assert [weighing.rank(one.hypotheses, {"model": []}) for one in others] == [[], []]
    dev = weighing.dev_set(job, scored(job, tmp_path / "scores", {"model": Model(Letters())}), CorpusMetric("bleu"))
    assert dev.present.sum(axis=1).tolist() == [2, 1, 1]


def test_the_list_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(
        '{"id": 0, "hypotheses": [{"text": "b"}, {"text": "a"}, {"text": "c c"}]}', encoding="utf-8"
    )
    (nbest,) = open_job(str(tmp_path / "list"), None, None)
    weighing = Weighing.untuned(False, ["model"])
    assert weighing.names == ("model", "words")
    scores = {"model": [-1.0, -2.0, 0.0]}
    assert [r.hypothesis.text for r in weighing.of_the_list().rank(nbest.hypotheses, scores)] == ["b", "a", "c c"]
    assert [r.hypothesis.text for r in weighing.rank(nbest.hypotheses, scores)] == ["c c", "b", "a"]
    assert weighing.rank([], {"model": []}) == []


def test_the_dev_set_counts_every_sentence(job: Job, tmp_path: Path) -> None:
    metric = CorpusMetric("bleu")
    weighing = Weighing.untuned(True, ["model"])
    dev = weighing.dev_set(job, scored(job, tmp_path / "scores", {"model": Model(Letters())}), metric)
    assert dev.present.sum(axis=1).tolist() == [2, 1, 1, 2, 1]
    chosen = ["a b", "", "dd", "e f g", ""]
    expected = metric.metric.corpus_score(chosen, [job.references]).score
    assert metric.score(dev.sums(weighing.of_the_list().weights)) == expected
