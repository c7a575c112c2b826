"""BLEU and chrF of a corpus, as a function of sums of statistics over its sentences; all by sacrebleu's own code.

Sizes: N sentences, K hypotheses of a sentence, C statistics of a hypothesis (n-gram matches, counts, lengths).
A corpus score is score(Σ_n statistics(hypothesis chosen for n)), so that another choice costs a sum and no counting.
Sources: Papineni et al. 2002 (BLEU), Popović 2015 (chrF), Post 2018 (sacrebleu), Koehn 2004 (paired bootstrap).
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from fairseq_llrnn.errors import OptionError, from_checkout

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
        try:
            from sacrebleu.metrics.bleu import BLEU
            from sacrebleu.metrics.chrf import CHRF
        except ModuleNotFoundError:
            raise OptionError(
                f"BLEU and chrF: expected the package sacrebleu, found none; {from_checkout('metrics')}"
            ) from None
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
        """sacrebleu's signature; known once there were statistics."""
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
