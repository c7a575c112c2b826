"""Measure agreement: accuracy on the pairs of pairs.py, by distance and by frequency.

    agreement.py --checkpoint best.pt --prepared OUT --pairs pairs.jsonl --mode honest

An answer is right if log p(right | prefix) > log p(wrong | prefix); a tie counts one half. Frequency alone answers many
pairs, and in paper mode the counts even contain the right word's own occurrence. So there are two further figures:
`balanced` is the mean of the accuracy on pairs with the rarer form right and of that on pairs with the more frequent
form right (a unigram scores exactly one half). And every table has the counts themselves as a model. Paper mode counts
in all four texts, honest mode in the training text. Intervals are 95 %, by bootstrap over sentences.
"""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from pairs import Pair

from fairseq_llrnn.errors import DataError, one_line_errors

DISTANCES = {"0": (0, 0), "1": (1, 1), "2-3": (2, 3), "4 and more": (4, 10**6)}
RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """An accuracy (or a difference of two) with its interval; NaN without pairs."""

    value: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return (
            "-" if math.isnan(self.value) else f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"
        )


def read_pairs(path: Path) -> list[Pair]:
    try:
        rows = path.read_text(encoding="utf-8").splitlines()
        pairs = [Pair(**json.loads(row)) for row in rows]
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: expected pairs as pairs.py writes them ({error}); write them again") from error
    if not pairs:
        raise DataError(f"{path}: expected pairs, found none; has the treebank HEAD and DEPREL?")
    return pairs


def right_minus_wrong(pair: Pair, mode: str) -> int:
    """Return the count of the right form minus that of the wrong form."""
    return pair.train_right - pair.train_wrong if mode == "honest" else pair.all_right - pair.all_wrong


def count_log_ratios(pairs: Sequence[Pair], mode: str) -> list[float]:
    """Return the log-ratios of the unigram as a model (only the sign matters)."""
    return [float(np.sign(right_minus_wrong(pair, mode))) for pair in pairs]


def is_rare(pair: Pair, top_words: int) -> bool:
    """Return whether both forms are outside the `top_words` most frequent words, without indicator features."""
    return min(pair.rank_right, pair.rank_wrong) >= top_words


def credits(log_ratios: Sequence[float]) -> np.ndarray:
    """Return 1 for a right answer, 0 for a wrong one, 1/2 for a tie."""
    return (np.sign(np.asarray(log_ratios, dtype=float)) + 1) / 2


@lru_cache(maxsize=64)
def resamples(sentences: int) -> np.ndarray:
    """Return how often each sentence is in each resample: (RESAMPLES, sentences)."""
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(sentences, np.full(sentences, 1 / sentences), size=RESAMPLES)
    return drawn.astype(np.float32)


def estimate(pairs: Sequence[Pair], values: np.ndarray, strata: np.ndarray) -> Estimate:
    """Return the mean of the strata's means of `values`, with its bootstrap interval.

    `strata` (one number per pair) is constant for a plain mean. Pairs of stratum −1 are left out. Sentences, not pairs,
    are resampled, because one sentence can give several pairs about the same words.
    """
    kept = [number for number, stratum in enumerate(strata) if stratum >= 0]
    groups = sorted({int(strata[number]) for number in kept})
    if not kept:
        return Estimate(math.nan, math.nan, math.nan, 0)
    names = {name: row for row, name in enumerate(sorted({(pairs[n].text, pairs[n].sentence) for n in kept}))}
    sums, sizes = np.zeros((2, len(names), len(groups)), dtype=np.float32)  # shape of each: sentences × strata
    for number in kept:
        cell = names[pairs[number].text, pairs[number].sentence], groups.index(int(strata[number]))
        sums[cell] += values[number]
        sizes[cell] += 1
    draws = resamples(len(names))
    with np.errstate(invalid="ignore"):
        resampled = np.nanmean((draws @ sums) / (draws @ sizes), axis=1)
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return Estimate(float(np.mean(sums.sum(0) / sizes.sum(0))), float(low), float(high), len(kept))


def accuracy(pairs: Sequence[Pair], values: np.ndarray) -> Estimate:
    return estimate(pairs, values, np.zeros(len(pairs)))


def balanced(pairs: Sequence[Pair], values: np.ndarray, mode: str) -> Estimate:
    """Return the mean of the accuracies on pairs whose frequency favours the right form, and the wrong form."""
    signs = np.array(count_log_ratios(pairs, mode))
    if {-1.0, 1.0} - set(signs):
        return Estimate(math.nan, math.nan, math.nan, 0)
    return estimate(pairs, values, np.where(signs == 0, -1, signs > 0))


def against(pairs: Sequence[Pair], values: np.ndarray, mode: str) -> Estimate:
    """Return the accuracy on pairs in which the wrong form is at least as frequent as the right one."""
    return estimate(pairs, values, np.where(np.array(count_log_ratios(pairs, mode)) > 0, -1, 0))


@dataclass(frozen=True)
class Group:
    """A row of the table: a selection of pairs. `None` takes all."""

    distance: str  # of DISTANCES
    top_words: int
    rare: bool
    kind: str | None = None
    attractor: bool | None = None

    def __contains__(self, pair: Pair) -> bool:
        low, high = DISTANCES[self.distance]
        return (
            low <= pair.distance <= high
            and is_rare(pair, self.top_words) == self.rare
            and self.kind in (None, pair.kind)
            and self.attractor in (None, pair.attractors > 0)
        )

    @property
    def name(self) -> str:
        parts = [
            f"distance {self.distance}",
            f"{'outside' if self.rare else 'inside'} the top {self.top_words}",
        ]
        parts += [self.kind] if self.kind else []
        parts += ["with an attractor"] if self.attractor else []
        return ", ".join(parts)


def headline(top_words: int) -> Group:
    """Return the group of the experiment's main figure: large distance, and neither form with an indicator feature."""
    return Group("4 and more", top_words, rare=True)


def groups(top_words: int) -> list[Group]:
    """Return all distances outside and inside the most frequent words, then the headline's pairs by kind."""
    far = headline(top_words)
    return [
        *(Group(distance, top_words, rare) for rare in (True, False) for distance in DISTANCES),
        *(replace(far, kind=kind) for kind in ("Gender", "Number")),
        replace(far, attractor=True),
    ]


def table(pairs: Sequence[Pair], log_ratios: Sequence[float], mode: str, top_words: int) -> str:
    """Return accuracies of one model and of the counts."""
    rows = [f"{'':56}{'pairs':>7}{'all pairs':>22}{'balanced':>22}{'wrong not rarer':>22}{'counts alone':>14}"]
    values, counts = credits(log_ratios), credits(count_log_ratios(pairs, mode))
    for group in groups(top_words):
        chosen = [number for number, pair in enumerate(pairs) if pair in group]
        members = [pairs[number] for number in chosen]
        answers = values[chosen]
        unigram = f"{100 * counts[chosen].mean():.1f}" if chosen else "-"
        cells = (
            accuracy(members, answers),
            balanced(members, answers, mode),
            against(members, answers, mode),
        )
        rows.append(f"{group.name:56}{len(chosen):7,}" + "".join(f"{cell!s:>22}" for cell in cells) + f"{unigram:>14}")
    return "\n".join(rows)


@one_line_errors("agreement.py")
def main() -> None:
    parser = argparse.ArgumentParser(description="accuracy of a language model on agreement pairs")
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--prepared", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--pairs", type=Path, required=True, help="what pairs.py wrote")
    parser.add_argument("--mode", choices=("paper", "honest"), required=True, help="whose counts balance the pairs")
    parser.add_argument(
        "--top-words", type=int, default=2500, metavar="M", help="what counts as frequent (default: 2500)"
    )
    args = parser.parse_args()
    from scoring import LanguageModel  # fairseq takes seconds to import: not for --help

    pairs = read_pairs(args.pairs)
    model = LanguageModel(args.checkpoint, args.prepared / "data-bin")
    answers = model.log_ratios([(pair.prefix, pair.right, pair.wrong) for pair in pairs])
    print(table(pairs, answers, args.mode, args.top_words))


if __name__ == "__main__":
    raise SystemExit(main())
