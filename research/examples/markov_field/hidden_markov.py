"""A first-order hidden Markov tagger with the smoothing and the suffix guesses of TnT (Brants 2000), as a baseline.

    p(t | t')   =  λ₁ p̂(t) + λ₂ p̂(t | t')         λ by deleted interpolation (§2.2)
    p(w | t)    =  count(w, t) / count(t)           for known words
    unknown:       p(t | ending) / p(t), with p(t | ending) a mixture over endings of growing length, of words with at
                   most ten occurrences, separately with and without a capital (§2.3); or, with suffixes=False,
                   p(t | a word that occurs once) / p(t)

Sizes: T tags, n words of a sentence.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

START = "</s>"
RARE, LONGEST = 10, 10
Sentence = Sequence[tuple[str, str]]


class HiddenMarkovTagger:
    """A tagger, which its constructor trains."""

    def __init__(self, sentences: Sequence[Sentence], suffixes: bool = True) -> None:
        self.suffixes = suffixes
        self.words: dict[str, Counter[str]] = defaultdict(Counter)
        tags, pairs = Counter[str](), Counter[tuple[str, str]]()
        for sentence in sentences:
            previous = START
            tags[START] += 1
            for word, tag in sentence:
                self.words[word][tag] += 1
                tags[tag] += 1
                pairs[previous, tag] += 1
                previous = tag
            pairs[previous, START] += 1
        self.tags = [START, *sorted(tag for tag in tags if tag != START)]
        self.counts = np.array([tags[tag] for tag in self.tags], dtype=float)
        self.steps = np.log(self._steps(pairs))
        self._train_unknown()

    def _steps(self, pairs: Counter[tuple[str, str]]) -> np.ndarray:
        """p(t | t'): (T, T), a row for each t'."""
        number = {tag: i for i, tag in enumerate(self.tags)}
        joint = np.zeros((len(number), len(number)))
        for (first, second), many in pairs.items():
            joint[number[first], number[second]] = many
        total, weights = self.counts.sum(), np.zeros(2)
        for first, second in zip(*joint.nonzero(), strict=True):
            alone = (self.counts[second] - 1) / (total - 1)
            after = (joint[first, second] - 1) / (self.counts[first] - 1) if self.counts[first] > 1 else 0.0
            weights[int(after > alone)] += joint[first, second]
        weights = np.maximum(weights, 1e-6) / weights.sum()
        return weights[0] * self.counts / total + weights[1] * joint / joint.sum(1, keepdims=True)

    def _train_unknown(self) -> None:
        """Count tags of rare words by ending, those with a capital separately."""
        number = {tag: i for i, tag in enumerate(self.tags)}
        zeros = np.zeros(len(number))
        self.endings: dict[tuple[bool, str], np.ndarray] = defaultdict(zeros.copy)
        self.once = zeros.copy()
        for word, tags in self.words.items():
            many = sum(tags.values())
            row = zeros.copy()
            for tag, count in tags.items():
                row[number[tag]] = count
            if many == 1:
                self.once += row
            if many <= RARE:
                for length in range(min(len(word), LONGEST) + 1):
                    self.endings[word[:1].isupper(), word[len(word) - length :]] += row
        shares = self.counts[1:] / self.counts[1:].sum()
        self.theta = float(np.sqrt(((shares - shares.mean()) ** 2).sum() / (len(shares) - 1)))

    def _emission(self, word: str) -> np.ndarray:
        """Return log p(w | t), up to a constant: (T,)."""
        if (tags := self.words.get(word)) is not None:
            found = np.array([tags.get(tag, 0) for tag in self.tags]) / self.counts
        elif self.suffixes:
            row = self.endings[word[:1].isupper(), ""]
            found = (row + 1e-9) / (row + 1e-9).sum()
            for length in range(1, min(len(word), LONGEST) + 1):
                key = word[:1].isupper(), word[len(word) - length :]
                if key not in self.endings:
                    break
                row = self.endings[key]
                found = (row / row.sum() + self.theta * found) / (1 + self.theta)
            found = found / self.counts
        else:
            found = (self.once + 1e-9) / self.counts
        found[0] = 0.0
        with np.errstate(divide="ignore"):
            return np.log(found)

    def tag(self, sentence: Sequence[str]) -> list[str]:
        """Return the best tags, by Viterbi's algorithm."""
        best, back = np.full(len(self.tags), -math.inf), []
        best[0] = 0.0
        for word in sentence:
            scores = best[:, np.newaxis] + self.steps
            back.append(scores.argmax(0))
            best = scores.max(0) + self._emission(word)
        if not sentence:
            return []
        state = int((best + self.steps[:, 0]).argmax())
        found = [state]
        for pointers in reversed(back[1:]):
            found.append(int(pointers[found[-1]]))
        return [self.tags[state] for state in reversed(found)]
