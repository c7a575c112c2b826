"""BLEU and chrF of a corpus, as a function of sums of statistics over its sentences; all by sacrebleu's own code.

Sizes: N sentences, K hypotheses of a sentence, C statistics of a hypothesis (n-gram matches, counts, lengths).
A corpus score is score(Σ_n statistics(hypothesis chosen for n)), so that another choice costs a sum and no counting.
Sources: Papineni et al. 2002 (BLEU), Popović 2015 (chrF), Post 2018 (sacrebleu), Koehn 2004 (paired bootstrap).

`corpus_scores` gives BLEU and chrF of Y systems, each compared with the first one by paired bootstrap, and
`sentence_scores` chrF of each sentence. `most_different` picks the sentences that are worth reading: those in which the
systems' sentence scores lie furthest apart.
"""

import difflib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from fairseq_llrnn.errors import need_library
from fairseq_llrnn.systems.reranking.texts import Texts, plain, spans

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.significance import Result


METRICS = ("bleu", "chrf")
TOKENIZERS = ("13a", "none")  # of BLEU: sacrebleu's default; none at all, for text in tokens, as multi-bleu has it
RESAMPLES = 1000


class Comparison(NamedTuple):
    """Corpus scores of a baseline and a system; p is None where they are equal, and there is nothing to test."""

    before: float
    after: float
    p: float | None
    signature: str


class CorpusMetric:
    """A metric with sacrebleu's default settings, of one reference a sentence.

    Args:
        name: of METRICS.
        tokenize: of TOKENIZERS. chrF counts characters, and does without.

    Raises:
        OptionError: sacrebleu, which is optional, is not installed.
    """

    def __init__(self, name: str, tokenize: str = TOKENIZERS[0]) -> None:
        need_library("BLEU and chrF", "sacrebleu", "metrics")
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        # force: no warning about tokenised text, which n-best lists of tokenised systems are
        self.metric: Metric = BLEU(tokenize=tokenize, force=True) if name == "bleu" else CHRF()
        self.name = "BLEU" if name == "bleu" else "chrF2"

    def statistics(self, hypotheses: Sequence[str], reference: str) -> np.ndarray:
        """What each hypothesis of a sentence adds to the corpus, (K, C)."""
        (counted,) = self.metric._cache_references([[reference]])
        rows = [
            self.metric._compute_segment_statistics(self.metric._preprocess_segment(hypothesis), counted)
            for hypothesis in hypotheses
        ]
        return np.array(rows, dtype=np.int64)

    def score(self, sums: np.ndarray) -> float:
        """The corpus score, 0 to 100, of summed statistics (C,)."""
        return float(self.metric._compute_score_from_stats(sums.tolist()).score)

    def signature(self) -> str:
        """sacrebleu's signature; it is complete once `statistics` was called."""
        return str(self.metric.get_signature())

    def compare(self, before: Sequence[str], after: Sequence[str], references: Sequence[str]) -> Comparison:
        """Scores of two systems on the same sentences, with paired bootstrap resampling between them."""
        from sacrebleu.significance import PairedTest

        logging.getLogger("sacrebleu").setLevel(logging.WARNING)
        test = PairedTest(
            [("before", before), ("after", after)], {self.name: self.metric}, [references], "bs", RESAMPLES
        )  # fmt: skip
        signatures, scores = test()
        first, second = cast("list[Result]", scores[self.name])
        p = None if first.score == second.score else second.p_value
        return Comparison(first.score, second.score, p, signatures[self.name].format())


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
    results = []
    for name in METRICS:
        metric = CorpusMetric(name, tokenize)
        if others:
            compared = [metric.compare(first, other, texts.reference) for other in others]
            scores = [compared[0].before, *(one.after for one in compared)]
            results.append(MetricScores(metric.name, compared[0].signature, scores, [None, *(c.p for c in compared)]))
        else:
            sums = sum(metric.statistics([h], r)[0] for h, r in zip(first, texts.reference, strict=True))
            score = metric.score(np.asarray(sums))
            results.append(MetricScores(metric.name, metric.signature(), [score], [None]))
    return results


def sentence_scores(texts: Texts) -> np.ndarray:
    """chrF of every sentence and system, (N, Y)."""
    metric = CorpusMetric("chrf")
    rows = zip(zip(*texts.systems.values(), strict=True), texts.reference, strict=True)
    return np.array([[metric.score(s) for s in metric.statistics(outputs, reference)] for outputs, reference in rows])


MOST_WORDS = 300  # of a line that is shown: comparing takes quadratic time

Piece = tuple[str, bool]  # a stretch of text, and whether it is unlike the reference


def most_different(scores: np.ndarray, count: int) -> list[int]:
    """Numbers of at most `count` sentences of (N, Y) scores, the widest range first; of one system, the worst first.

    Sentences in which all systems score alike are left out (of one system: those that are perfect).
    """
    least = scores.min(axis=1)  # shape: (N,)
    ranges = (scores.max(axis=1) if scores.shape[1] > 1 else 100.0) - least
    order = np.argsort(-ranges, kind="stable")
    return [int(n) for n in order[:count] if ranges[n] > 1e-9]


def pieces(output: str, reference: str) -> list[Piece]:
    """The output cut into stretches, those that difflib does not find in the reference in this order marked.

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
    """A plain line, cut where `pieces` cuts."""
    text = plain(line)
    places: Sequence[tuple[int, int]] = spans(text)
    return text if len(places) <= MOST_WORDS else text[: places[MOST_WORDS - 1][1]] + " …"
