"""Grading a model on the embedded corpus, with models whose answers are known beforehand."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from toy_french import make_corpus, write_corpus
from toy_french.evaluation import DISTANCES, KINDS, Exam, grade, read_exam, sentence_to_explain

SPLIT_AT = [first for first, _ in DISTANCES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exam")
    write_corpus(make_corpus(1000, seed=2), path)
    return path


@pytest.fixture(scope="module")
def exam(folder: Path) -> Exam:
    return read_exam(folder)


def uniform(sentences: Sequence[Sequence[str]]) -> list[list[float]]:
    """Every word has one chance in a hundred."""
    return [[-math.log(100)] * (len(sentence) + 1) for sentence in sentences]


def test_the_exam_is_the_test_text_with_a_kind_for_each_word(exam: Exam, folder: Path) -> None:
    assert [" ".join(words) for words in exam.sentences] == (folder / "test.txt").read_text("utf-8").splitlines()
    counts = dict(line.split() for line in (folder / "vocabulary.txt").read_text("utf-8").splitlines())
    for words, kinds in zip(exam.sentences, exam.kinds, strict=True):
        assert len(kinds) == len(words) + 1
        for word, kind in zip(words, kinds, strict=False):
            assert kind in KINDS
            expected = "unseen" if counts[word] == "0" else "seen often" if int(counts[word]) >= 10 else "seen rarely"
            assert kind.startswith(expected)
    assert {kind for kinds in exam.kinds for kind in kinds} == set(KINDS)


def test_a_uniform_model_has_its_perplexity_and_no_opinion(exam: Exam) -> None:
    grades = grade(exam, uniform)
    assert grades.perplexity == pytest.approx(100)
    assert grades.perplexity_of("unseen") == pytest.approx(100)
    assert sum(grades.counts.values()) == sum(map(len, exam.kinds))
    assert grades.accuracy(0, 99) == (0.0, 480)  # a tie is no right answer
    assert grades.ratio("number") == grades.ratio("place") == 1.0


def test_a_model_that_knows_the_answers(exam: Exam) -> None:
    """p(right) is e times p(wrong), but only up to four words after the noun."""
    near = {(p.prefix, p.right) for p in exam.probes if p.kind != "agreement" or p.distance < SPLIT_AT[1]}

    def score(sentences: Sequence[Sequence[str]]) -> list[list[float]]:
        known = [(" ".join(sentence[:-1]), sentence[-1]) in near for sentence in sentences]
        return [
            [-5.0] * (len(sentence) - 1) + [-2.0 if knows else -3.0, 0.0]
            for sentence, knows in zip(sentences, known, strict=True)
        ]

    grades = grade(exam, score)
    shares = [grades.accuracy(*bucket) for bucket in DISTANCES]
    assert [share for share, _ in shares] == [1.0, 0.0, 0.0]
    assert sum(count for _, count in shares) == 480 and all(count > 50 for _, count in shares)
    assert grades.ratio("number") == pytest.approx(math.e)
    assert grades.ratio("place") == pytest.approx(math.e)


def test_the_explained_sentence_ends_in_an_unseen_feminine_plural(exam: Exam, folder: Path) -> None:
    *_, form, stop = sentence_to_explain(exam).split()
    assert stop == "."
    lexicon = (folder / "lexicon.tsv").read_text("utf-8").splitlines()
    (feats,) = (row.split("\t")[3] for row in lexicon if row.startswith(form + "\t"))
    assert "Gender=Fem|Number=Plur" in feats
    assert f"{form} 0" in (folder / "vocabulary.txt").read_text("utf-8").splitlines()
