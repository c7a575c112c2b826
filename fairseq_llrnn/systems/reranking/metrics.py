"""BLEU and chrF of a corpus as functions of summed sentence statistics, computed by sacrebleu's own code.

Sizes: N sentences, K hypotheses of a sentence, C statistics of a hypothesis (n-gram matches, counts, lengths). A corpus
score is score(Σ_n statistics(hypothesis chosen for n)), so that another choice costs a sum and no counting. Sources:
Papineni et al. 2002 (BLEU), Popović 2015 (chrF), Post 2018 (sacrebleu), Koehn 2004 (paired bootstrap).

`corpus_scores` returns BLEU and chrF of Y systems, each compared with the first by paired bootstrap. `sentence_scores`
returns chrF of each sentence, and `examples` the sentences in which these scores differ most.
"""

import difflib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from fairseq_llrnn.errors import need_library
from fairseq_llrnn.systems.reranking.texts import Texts, plain, spans

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.significance import Result


METRICS = ("bleu", "chrf")
TOKENIZERS = ("13a", "none")  # of BLEU: sacrebleu's default; none, for tokenised text, as in multi-bleu
RESAMPLES = 1000


@dataclass(frozen=True)
class MetricScores:
    """Scores of the systems (Y), with p-values: None for the first system, and for a score equal to the first one's."""

    name: str
    signature: str
    scores: list[float]
    p_values: list[float | None]


class CorpusMetric:
    """A metric with sacrebleu's default settings and one reference per sentence.

    Args:
        name: of METRICS.
        tokenize: of TOKENIZERS, ignored by chrF, which counts characters.

    Raises:
        OptionError: the optional library sacrebleu is not installed.
    """

    def __init__(self, name: str, tokenize: str = TOKENIZERS[0]) -> None:
        need_library("BLEU and chrF", "sacrebleu", "metrics")
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        # force: no warning about tokenised text
        self.metric: Metric = BLEU(tokenize=tokenize, force=True) if name == "bleu" else CHRF()
        self.name = "BLEU" if name == "bleu" else "chrF2"

    def statistics(self, hypotheses: Sequence[str], reference: str) -> np.ndarray:
        """Return the statistics of each hypothesis of a sentence, (K, C)."""
        (counted,) = self.metric._cache_references([[reference]])
        rows = [
            self.metric._compute_segment_statistics(self.metric._preprocess_segment(hypothesis), counted)
            for hypothesis in hypotheses
        ]
        return np.array(rows, dtype=np.int64)

    def score(self, sums: np.ndarray) -> float:
        """Return the corpus score, 0 to 100, of summed statistics, (C,)."""
        return float(self.metric._compute_score_from_stats(sums.tolist()).score)

    def signature(self) -> str:
        """Return sacrebleu's signature, which is complete only after a call of `statistics`."""
        return str(self.metric.get_signature())

    def compare(self, systems: Sequence[Sequence[str]], references: Sequence[str]) -> MetricScores:
        """Score one system, or several ones on the same sentences, each compared with the first by paired bootstrap."""
        from sacrebleu.significance import PairedTest

        if len(systems) == 1:
            sums = sum(self.statistics([h], r)[0] for h, r in zip(systems[0], references, strict=True))
            score = self.score(np.asarray(sums))
            return MetricScores(self.name, self.signature(), [score], [None])
        logging.getLogger("sacrebleu").setLevel(logging.WARNING)
        named = [(str(number), outputs) for number, outputs in enumerate(systems)]
        signatures, results = PairedTest(named, {self.name: self.metric}, [references], "bs", RESAMPLES)()
        compared = cast("list[Result]", results[self.name])
        p_values = [None if result.score == compared[0].score else result.p_value for result in compared]
        return MetricScores(
            self.name, signatures[self.name].format(), [result.score for result in compared], p_values
        )


def corpus_scores(texts: Texts, tokenize: str = TOKENIZERS[0]) -> list[MetricScores]:
    """Return the scores of each metric of METRICS. `tokenize`, of TOKENIZERS, is for BLEU."""
    return [CorpusMetric(name, tokenize).compare([*texts.systems.values()], texts.reference) for name in METRICS]


def sentence_scores(texts: Texts) -> np.ndarray:
    """Return chrF of every sentence and system, (N, Y)."""
    metric = CorpusMetric("chrf")
    rows = zip(zip(*texts.systems.values(), strict=True), texts.reference, strict=True)
    return np.array([[metric.score(s) for s in metric.statistics(outputs, reference)] for outputs, reference in rows])


MOST_WORDS = 300  # shown of a line, because comparing takes quadratic time

Piece = tuple[str, bool]  # a stretch of text, and whether it differs from the reference


def most_different(scores: np.ndarray, count: int) -> list[int]:
    """Return at most `count` sentence numbers, by the range of scores, (N, Y), or of one system by the lowest score.

    Sentences with equal scores (of one system: with perfect scores) are omitted.
    """
    least = scores.min(axis=1)  # shape: (N,)
    ranges = (scores.max(axis=1) if scores.shape[1] > 1 else 100.0) - least
    order = np.argsort(-ranges, kind="stable")
    return [int(n) for n in order[:count] if ranges[n] > 1e-9]


@dataclass(frozen=True)
class Example:
    """A sentence (numbered from 1) with the output and chrF of each system (Y)."""

    number: int
    source: str
    reference: str
    outputs: list[list[Piece]]
    scores: list[float]


def examples(texts: Texts, count: int = 30) -> list[Example]:
    """Return the sentences in which the systems differ most."""
    scores = sentence_scores(texts)
    return [
        Example(
            n + 1,
            shortened(texts.source[n]),
            shortened(texts.reference[n]),
            [pieces(lines[n], texts.reference[n]) for lines in texts.systems.values()],
            scores[n].tolist(),
        )
        for n in most_different(scores, count)
    ]


def pieces(output: str, reference: str) -> list[Piece]:
    """Split an output into stretches, marked if difflib does not match them with the reference in order.

    Joined, they are the output without Moses' escapes, or its first MOST_WORDS words.
    """
    text = plain(output)
    wanted = plain(reference)
    places = spans(text)[:MOST_WORDS]
    output_words = [text[a:b] for a, b in places]
    reference_words = [wanted[a:b] for a, b in spans(wanted)[:MOST_WORDS]]
    stretches: list[Piece] = []
    end = 0
    matcher = difflib.SequenceMatcher(None, output_words, reference_words, autojunk=False)
    for name, first, last, _, _ in matcher.get_opcodes():
        if first == last:
            continue
        start, stop = places[first][0], places[last - 1][1]
        if start > end:
            stretches.append((text[end:start], False))
        stretches.append((text[start:stop], name != "equal"))
        end = stop
    return stretches


def shortened(line: str) -> str:
    """Return a line without Moses' escapes, truncated like `pieces`."""
    text = plain(line)
    places: Sequence[tuple[int, int]] = spans(text)
    return text if len(places) <= MOST_WORDS else text[: places[MOST_WORDS - 1][1]] + " …"
