"""Rescoring of n-best lists: every model scores every hypothesis, and a weighted sum of the scores ranks them.

    Job (list, source) ─ score_list ─> ScoreFile ─ features ─> (K, D) per sentence ─ rank ─> best first
                                                └─ dev_set ─> DevSet ─ tuning.tune ─> weights (D,) ─┘

Sizes: K hypotheses of a sentence, D features: the list's own total, one score per model in nats, chosen features of the
list, the number of words.
Noisy channel (Yee et al. 2019; Ng et al. 2019, §2.4): log p(y|x), log p(x|y) and log p(y) with tuned weights. The
number of words compensates for the lower sums of long hypotheses.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.files.text_lines import iter_lines, iter_sentences, sentence_of, shown
from fairseq_llrnn.systems.reranking.metrics import CorpusMetric
from fairseq_llrnn.systems.reranking.nbest import Hypothesis, NBest, NBestFile, Ranked, open_nbest
from fairseq_llrnn.systems.reranking.nbest.marks import TAGS, has_tags
from fairseq_llrnn.systems.reranking.score_cache import ScoreFile, Scores
from fairseq_llrnn.systems.reranking.tuning import DevSet

LIST, WORDS = "list", "words"
OF_LIST = f"{LIST}."  # before the name of a feature of the list
PENALTY = -10_000.0  # nats, for a hypothesis that a model could not score, or with zero probability
CHUNK = 1000  # hypotheses between two writes to disk (at least one sentence)


class Scorer(Protocol):
    """The interface of fairseq_llrnn.plugin.scoring.sentences."""

    notes: Counter[str]
    dictionaries: tuple[Path, ...]  # on which the scores depend, in addition to the model
    prior: str | None  # the signature of a model's prior

    def score(self, sources: Sequence[str] | None, hypotheses: Sequence[str]) -> list[float]:
        """Return log p(hypothesis </s> | source) in nats, −inf if it cannot be scored."""


@dataclass(frozen=True)
class Model:
    """A scorer of hypotheses. backwards: of the source given the hypothesis, without the part after a tab."""

    scorer: Scorer
    backwards: bool = False

    def score(self, sources: Sequence[str], hypotheses: Sequence[str]) -> list[float]:
        """Return the log-probabilities of hypotheses, or of their sources."""
        if self.backwards:
            return self.scorer.score(hypotheses, list(map(sentence_of, sources)))
        return self.scorer.score(sources, hypotheses)


# ---- input -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A list with its source file and reference, if any.

    Attributes:
        sentences: number of sentences of the source, or up to the list's last one.
    """

    lists: NBestFile
    source: str | None
    references: list[str] | None
    sentences: int
    notes: tuple[str, ...] = ()  # on the source

    def __iter__(self) -> Iterator[NBest]:
        """Yield all sentences in order, also those without hypotheses, with the sources of the file or of the list."""
        texts: Iterator[str | None]
        texts = itertools.repeat(None) if self.source is None else (line for _, line in iter_lines(self.source))
        waiting = iter(self.lists)
        nbest = next(waiting, None)
        for number, text in zip(range(self.sentences), texts, strict=False):
            if nbest is not None and nbest.number == number:
                yield nbest if text is None else replace(nbest, source=text)
                nbest = next(waiting, None)
            else:
                yield NBest(number, text)


def open_job(nbest: str, source: str | None, reference: str | None) -> Job:
    """Check all files of a job before any computation.

    Raises:
        DataError: as in open_nbest, or if list, source and reference are not of the same text.
    """
    lists = open_nbest(nbest)
    sentences = lists.last + 1
    notes: tuple[str, ...] = ()
    if source is not None:
        sentences, tagged = 0, []
        for number, line in iter_sentences(source):
            sentences += 1
            tagged += [number] if has_tags(line) else []
        if tagged:
            notes = (f"{source}: {len(tagged):,} {TAGS.format('sentences')} (the first in line {tagged[0]:,})",)
        if not sentences:
            raise DataError(f"{source}: expected the source of {lists.path}, found no sentences; give another file")
        if lists.last >= sentences:
            hint = "are its sentences counted from 1?" if lists.last == sentences else "give the source of this list"
            raise DataError(
                f"{lists.path}: expected sentences from 0 to {sentences - 1}, as many as {source} has lines, found "
                f"sentence {lists.last}; {hint}"
            )
        _check_same_source(lists, source)
    references = None
    if reference is not None:
        references = [line for _, line in iter_sentences(reference)]
        if len(references) != sentences:
            raise DataError(
                f"{reference}: expected {sentences:,} lines, one for each sentence of {source or lists.path}, found "
                f"{len(references):,}; give the reference of this text"
            )
    return Job(lists, source, references, sentences, notes)


def _check_same_source(lists: NBestFile, source: str) -> None:
    """Raise DataError if the list's sources differ from the file's in letters and digits, ignoring case.

    Pieces and tokenisation may therefore differ, and an unknown word matches any.
    """
    texts = enumerate(text for _, text in iter_lines(source))
    for nbest in lists:
        if nbest.source is None:
            continue
        text = next(text for number, text in texts if number == nbest.number)
        if not _is_made_of([_letters(part) for part in nbest.source.split(UNK)], _letters(sentence_of(text))):
            raise DataError(
                f"{lists.path}: the source of sentence {nbest.number} is {shown(nbest.source)}, but {source} has "
                f"{shown(text)}; give the source of this list"
            )


def _is_made_of(parts: Sequence[str], text: str) -> bool:
    """Return whether the text has these parts (`_letters`) in this order, with anything between them."""
    first, *others = parts
    middle = "".join(f"(?>.*?{part})" for part in others[:-1])  # first occurrences, without backtracking
    return re.fullmatch("".join([first, middle, *(f".*{part}" for part in others[-1:])]), text) is not None


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


# ---- scores ----------------------------------------------------------------------------------------------------------


def score_list(job: Job, models: Mapping[str, Model], scores: ScoreFile) -> None:
    """Score the sentences that `scores` lacks, chunk by chunk."""
    with tqdm(
        desc=f"scoring {job.lists.path}", total=job.lists.hypotheses, initial=scores.hypotheses,
        unit=" hypotheses", leave=False, disable=None,
    ) as bar:  # fmt: skip
        held = scores.sentences
        for chunk in chunks(job):
            if held > 0:
                held -= len(chunk)
                continue
            hypotheses = [h.text for nbest in chunk for h in nbest.hypotheses]
            sources = [nbest.source or "" for nbest in chunk for _ in nbest.hypotheses]
            by_model: Scores = {}
            notes = {}
            for name, model in models.items():
                flat = iter(model.score(sources, hypotheses))
                by_model[name] = [[next(flat) for _ in nbest.hypotheses] for nbest in chunk]
                notes[name] = Counter(model.scorer.notes)
                model.scorer.notes.clear()
            scores.append(by_model, notes)
            bar.update(len(hypotheses))


def chunks(sentences: Iterable[NBest]) -> Iterator[list[NBest]]:
    """Yield chunks of sentences with about CHUNK hypotheses, which are scored and stored together."""
    chunk: list[NBest] = []
    size = 0
    for nbest in sentences:
        chunk.append(nbest)
        size += max(1, len(nbest.hypotheses))
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


# ---- weights ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weighing:
    """Names of the features (D) and their weights (D,)."""

    names: tuple[str, ...]
    weights: np.ndarray

    @classmethod
    def untuned(cls, has_totals: bool, models: Iterable[str], features: Iterable[str] = ()) -> "Weighing":
        """Return weights of 1 for the list's totals (if any), the models' scores and the list's features, and 0 for
        the number of words.
        """
        names = (*([LIST] if has_totals else []), *models, *(f"{OF_LIST}{name}" for name in features), WORDS)
        return cls(names, np.array([float(name != WORDS) for name in names]))

    def of_the_list(self) -> "Weighing":
        """Return weights that rank by the list's own totals, or keep its order if it has none."""
        return replace(self, weights=np.array([float(name == LIST) for name in self.names]))

    def features(self, hypotheses: Sequence[Hypothesis], scores: Mapping[str, Sequence[float]]) -> np.ndarray:
        """Return the features of a sentence's hypotheses, (K, D), with the models' scores clipped at PENALTY."""
        columns = {name: [max(score, PENALTY) for score in of_model] for name, of_model in scores.items()}
        chosen = {name: name.removeprefix(OF_LIST) for name in self.names if name.startswith(OF_LIST)}
        columns |= {name: [h.features[in_list] for h in hypotheses] for name, in_list in chosen.items()}
        columns[LIST] = [h.score or 0.0 for h in hypotheses]
        columns[WORDS] = [len(h.text.split()) for h in hypotheses]
        return np.array([columns[name] for name in self.names], dtype=np.float64).T

    def rank(self, hypotheses: Sequence[Hypothesis], scores: Mapping[str, Sequence[float]]) -> list[Ranked]:
        """Return the hypotheses, best first (ties in list order), with the models' scores and weighted sums."""
        features = self.features(hypotheses, scores)
        totals = features @ self.weights  # shape: (K,)
        added = [(i, name) for i, name in enumerate(self.names) if name in scores]
        return [
            Ranked(hypotheses[k], {name: float(features[k, i]) for i, name in added}, float(totals[k]))
            for k in np.argsort(-totals, kind="stable")
        ]

    def dev_set(self, job: Job, scores: ScoreFile, metric: CorpusMetric) -> DevSet:
        """Return features and statistics of the hypotheses of a job with references, or of an empty one if there is
        none.
        """
        features, statistics = [], []
        bar = tqdm(job, f"comparing {job.lists.path}", job.sentences, unit=" sentences", leave=False, disable=None)
        for nbest, by_model, reference in zip(bar, scores, job.references or (), strict=True):
            empty = Hypothesis("", "", 0.0, features=dict.fromkeys(job.lists.features, 0.0))
            hypotheses = nbest.hypotheses or [empty]
            by_model = by_model if nbest.hypotheses else {name: [0.0] for name in by_model}
            features.append(self.features(hypotheses, by_model))
            statistics.append(metric.statistics([h.output for h in hypotheses], reference))
        return DevSet.of(features, statistics)
