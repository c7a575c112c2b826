"""How well a phrase table covers a hypothesis: a feature for each of its columns (Cho et al. 2014, §3.1 adds one).

A covering cuts a hypothesis y into spans. Each is the target side of a phrase pair whose source side stands somewhere
in the source x, or a single word that is left uncovered. Where the source side stands, and whether another span uses it
too, is free: there is no distortion, so that the best covering is found exactly, from left to right:

    v(u)      = max over pairs (f, u), f in x, of  mean over columns c of log p_c(f, u)          −∞ where there is none
    best(0)   = 0
    best(k)   = max( best(k − 1) + UNCOVERED,  max over j < k of best(j) + v(y_j … y_{k−1}) )
    feature c = Σ log p_c over the pairs of the best covering, and UNCOVERED for each word that is left

Of equal coverings the one is taken whose last span is shortest, and so on; a word is left uncovered only where that is
better. A score of 0 counts as e^LEAST, as in Moses. Sizes: D columns, W words of the longest phrase, J words of a
hypothesis: J·W look-ups.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_llrnn.files.text_lines import ReadCount
from fairseq_llrnn.rescoring.phrase_table import iter_phrase_pairs

UNCOVERED = -10.0  # nats, in every column
LEAST = -100.0
NOT_IN_SOURCES = "of phrases that no source has"
WORDS, UNKNOWN = "words", "unknown words"  # what is counted, as for other models

Columns = tuple[float, ...]  # log p of a pair, or sums of these, by column
Pairs = dict[str, tuple[float, Columns]]  # by target phrase: the best mean over columns, and the columns


@dataclass
class PhraseTable:
    """The pairs of a table whose source phrases stand in some sources, by source phrase."""

    pairs: dict[str, Pairs]
    longest_source: int
    longest_target: int
    notes: Counter[str] = field(default_factory=Counter)
    _current: tuple[str, Pairs] | None = None  # the last source and its pairs
    _last: tuple[object, object, list[Columns]] | None = None  # what was asked last, and the answer

    @classmethod
    def read(cls, path: Path | str, sources: Iterable[str]) -> PhraseTable:
        """Read what can be of use for these sources. Raises DataError for a file that is no table."""
        sentences = [source.split() for source in sources]
        spans: dict[int, set[str]] = {}  # by length
        pairs: dict[str, Pairs] = {}
        longest = 0
        count = ReadCount(path, "phrase pairs")
        for pair in iter_phrase_pairs(count):
            size = len(pair.source)
            if size not in spans:
                spans[size] = {" ".join(s[i : i + size]) for s in sentences for i in range(len(s) - size + 1)}
            source = " ".join(pair.source)
            if source not in spans[size]:
                count.left_out[NOT_IN_SOURCES] += 1
                continue
            count.read += 1
            columns = tuple(max(LEAST, math.log(score)) if score else LEAST for score in pair.scores)
            _keep_best(pairs.setdefault(source, {}), " ".join(pair.target), sum(columns) / len(columns), columns)
            longest = max(longest, len(pair.target))
        return cls(pairs, max(spans), longest)

    def scores(self, sources: Sequence[str], hypotheses: Sequence[str], num_columns: int) -> list[Columns]:
        """The features of every hypothesis. Asked again for the same lists, it answers without computing."""
        if self._last is None or self._last[0] is not sources or self._last[1] is not hypotheses:
            by_hypothesis = [self._cover(s, h, num_columns) for s, h in zip(sources, hypotheses, strict=True)]
            self._last = sources, hypotheses, by_hypothesis
        return self._last[2]

    def _of_source(self, source: str) -> Pairs:
        """The best pair for each target phrase."""
        if self._current is None or self._current[0] != source:
            words = source.split()
            best: Pairs = {}
            for i in range(len(words)):
                for end in range(i + 1, min(i + self.longest_source, len(words)) + 1):
                    for target, (mean, columns) in self.pairs.get(" ".join(words[i:end]), {}).items():
                        _keep_best(best, target, mean, columns)
            self._current = source, best
        return self._current[1]

    def _cover(self, source: str, hypothesis: str, num_columns: int) -> Columns:
        pairs, words = self._of_source(source), hypothesis.split()
        uncovered = (UNCOVERED,) * num_columns
        best: list[tuple[float, Columns]] = [(0.0, (0.0,) * num_columns)]
        left: list[int] = [0]  # uncovered words up to here
        for k in range(1, len(words) + 1):
            chosen, row, begin = -math.inf, uncovered, k - 1
            for j in range(k - 1, max(-1, k - 1 - self.longest_target), -1):
                mean, columns = pairs.get(" ".join(words[j:k]), (-math.inf, uncovered))
                if best[j][0] + mean > chosen:
                    chosen, row, begin = best[j][0] + mean, columns, j
            is_left = best[k - 1][0] + UNCOVERED > chosen
            if is_left:
                chosen, row, begin = best[k - 1][0] + UNCOVERED, uncovered, k - 1
            best.append((chosen, tuple(a + b for a, b in zip(best[begin][1], row, strict=True))))
            left.append(left[begin] + is_left)
        self.notes[WORDS] += len(words)
        self.notes[UNKNOWN] += left[-1]
        return best[-1][1]


class PhraseColumn:
    """One column of a table as a scorer of hypotheses; the first one tells what was counted."""

    def __init__(self, table: PhraseTable, column: int, num_columns: int) -> None:
        self.table, self.column, self.num_columns = table, column, num_columns
        self.notes: Counter[str] = table.notes if column == 0 else Counter()
        self.dictionaries: tuple[Path, ...] = ()
        self.prior: str | None = None

    def score(self, sources: Sequence[str] | None, hypotheses: Sequence[str]) -> list[float]:
        """The feature of each hypothesis."""
        by_hypothesis = self.table.scores(sources or (), hypotheses, self.num_columns)
        return [columns[self.column] for columns in by_hypothesis]


def _keep_best(pairs: Pairs, target: str, mean: float, columns: Columns) -> None:
    if target not in pairs or mean > pairs[target][0]:
        pairs[target] = mean, columns
