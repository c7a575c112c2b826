"""Evaluate a language model on the language: loss by kind of word, and answers to the probes.

A model is a `Scorer`: sentences in, log-probabilities (nats) of their words out, the end of the sentence included.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import conllu

from fairseq_llrnn.errors import DataError
from toy_french.corpus import kind_of_unseen
from toy_french.probes import Probe
from toy_french.words import Word, feats

Scorer = Callable[[Sequence[Sequence[str]]], list[list[float]]]

OFTEN = 10  # a word seen this many times in training counts as known well
KINDS = ("seen often", "seen rarely", "unseen agreeing", "unseen number", "unseen place", "unseen other")
DISTANCES = ((0, 3), (4, 7), (8, 99))  # words between


@dataclass(frozen=True)
class Exam:
    """The test text with the kind of each word (and of each sentence's end), and the probes."""

    sentences: list[list[str]]
    kinds: list[list[str]]
    probes: list[Probe]


@dataclass(frozen=True)
class Grades:
    nats: dict[str, float]  # kind of word -> mean −log p
    counts: dict[str, int]  # kind of word -> how many in the test text
    log_ratios: list[tuple[Probe, float]]  # log p(right) − log p(wrong)

    @property
    def perplexity(self) -> float:
        """Return the perplexity over all words and sentence ends."""
        total = math.fsum(self.nats[kind] * count for kind, count in self.counts.items())
        return math.exp(total / sum(self.counts.values()))

    def perplexity_of(self, prefix: str) -> float:
        """Return the perplexity over the kinds with this prefix: "unseen" for all words outside the training text."""
        counts = {kind: count for kind, count in self.counts.items() if kind.startswith(prefix)}
        return math.exp(
            math.fsum(self.nats[kind] * count for kind, count in counts.items()) / sum(counts.values())
        )

    def accuracy(self, first: int, last: int) -> tuple[float, int]:
        """Return the accuracy on agreement probes at these distances, and their number."""
        answers = [
            ratio > 0
            for probe, ratio in self.log_ratios
            if probe.kind == "agreement" and first <= probe.distance <= last
        ]
        return sum(answers) / max(1, len(answers)), len(answers)

    def ratio(self, kind: str) -> float:
        """Return the geometric mean of p(right) / p(wrong) over the probes of a kind."""
        ratios = [ratio for probe, ratio in self.log_ratios if probe.kind == kind]
        return math.exp(math.fsum(ratios) / len(ratios))


def read_exam(folder: Path) -> Exam:
    """Read the files of `write_corpus`.

    Raises:
        DataError: a file is missing.
    """
    try:
        counts = Counter(
            {word: int(count) for word, count in (line.split() for line in _lines(folder / "vocabulary.txt"))}
        )
        trees = conllu.parse((folder / "test.conllu").read_text(encoding="utf-8"))
        probes = [Probe(**json.loads(line)) for line in _lines(folder / "probes.jsonl")]
    except FileNotFoundError as error:
        raise DataError(
            f"expected the embedded corpus in {folder}, found no {Path(error.filename).name}; "
            f"make it with: python scripts/make_corpus.py --out {folder}"
        ) from None
    words = [[_word(token) for token in tree] for tree in trees]
    return Exam(
        sentences=[[word.form for word in sentence] for sentence in words],
        kinds=[[*(_kind(word, counts) for word in sentence), "seen often"] for sentence in words],
        probes=probes,
    )


def _lines(path: Path) -> Iterable[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _word(token: conllu.Token) -> Word:
    pairs = (f"{name}={value}" for name, value in (token["feats"] or {}).items())
    return Word(token["form"], token["lemma"], token["upos"], feats(*pairs))


def _kind(word: Word, counts: Counter[str]) -> str:
    if counts[word.form] == 0:
        return f"unseen {kind_of_unseen(word)}"
    return "seen often" if counts[word.form] >= OFTEN else "seen rarely"


def grade(exam: Exam, score: Scorer) -> Grades:
    """Evaluate a model on the exam."""
    losses: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for kinds, scores in zip(exam.kinds, score(exam.sentences), strict=True):
        for kind, log_prob in zip(kinds, scores, strict=True):
            losses[kind].append(-log_prob)
    losses = {kind: values for kind, values in losses.items() if values}
    return Grades(
        nats={kind: math.fsum(values) / len(values) for kind, values in losses.items()},
        counts={kind: len(values) for kind, values in losses.items()},
        log_ratios=list(zip(exam.probes, _log_ratios(exam.probes, score), strict=True)),
    )


def _log_ratios(probes: Sequence[Probe], score: Scorer) -> list[float]:
    right = score([[*probe.prefix.split(), probe.right] for probe in probes])
    wrong = score([[*probe.prefix.split(), probe.wrong] for probe in probes])
    # the last score is that of the sentence's end, the one before it that of the answer
    return [a[-2] - b[-2] for a, b in zip(right, wrong, strict=True)]


def sentence_to_explain(exam: Exam) -> str:
    """Return a short sentence with an unseen feminine plural after a relative clause: les maisons que le roi garde sont
    fermées.
    """
    candidates = (
        probe
        for probe in exam.probes
        if probe.kind == "agreement"
        and probe.right.endswith("es")
        and {"que", "qu'", "qui"} & set(probe.prefix.split())
        and {"sont", "étaient", "seront"} & set(probe.prefix.split()[-2:])
    )
    chosen = min(candidates, key=lambda probe: (len(probe.prefix.split()), len(probe.prefix)))
    return f"{chosen.prefix} {chosen.right} ."
