"""BLEU and chrF of the systems, each against the first one by paired bootstrap; chrF of each sentence.

Sizes: N sentences, Y systems.
"""

from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.evaluation.corpus_metrics import METRICS, TOKENIZERS, CorpusMetric
from fairseq_llrnn.evaluation.texts import Texts


@dataclass(frozen=True)
class MetricScores:
    """Scores (Y) with a p-value each: None for the first system, and for one that scores exactly as the first does."""

    name: str
    signature: str
    scores: list[float]
    p_values: list[float | None]


def corpus_scores(texts: Texts, tokenize: str = TOKENIZERS[0]) -> list[MetricScores]:
    """For each of METRICS; `tokenize`, of TOKENIZERS, is BLEU's."""
    first, *others = texts.systems.values()
    found = []
    for name in METRICS:
        metric = CorpusMetric(name, tokenize)
        if others:
            compared = [metric.compare(first, other, texts.reference) for other in others]
            scores = [compared[0].before, *(one.after for one in compared)]
            found.append(MetricScores(metric.name, compared[0].signature, scores, [None, *(c.p for c in compared)]))
        else:
            sums = sum(metric.statistics([h], r)[0] for h, r in zip(first, texts.reference, strict=True))
            score = metric.score(np.asarray(sums))
            found.append(MetricScores(metric.name, metric.signature(), [score], [None]))
    return found


def sentence_scores(texts: Texts) -> np.ndarray:
    """chrF of every sentence and system, (N, Y)."""
    metric = CorpusMetric("chrf")
    rows = zip(zip(*texts.systems.values(), strict=True), texts.reference, strict=True)
    return np.array([[metric.score(s) for s in metric.statistics(outputs, reference)] for outputs, reference in rows])
