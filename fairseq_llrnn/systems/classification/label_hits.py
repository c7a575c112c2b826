"""Precision and recall of predicted labels, in percent: P@1, P@5, R@5.

P@k is the share of correct ones among k predicted labels of each text. R@k is the share of all gold labels that are
among them. As in fastText (Joulin et al. 2017), a text has several gold labels. Unlike there, labels that are missing
in training count, although no prediction has them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass


@dataclass
class LabelHits:
    """Counts over texts."""

    texts: int = 0
    labels: int = 0  # gold labels, including unseen ones
    unseen: int = 0  # gold labels missing in training
    first: int = 0  # texts with a correct best label
    five: int = 0  # gold labels among the five best

    def add(self, best: Sequence[int] | Sequence[str], gold: Set[int] | Set[str], unseen: int = 0) -> None:
        """Count one text.

        Args:
            best: its predicted labels, best first.
            gold: its gold labels.
            unseen: number of further gold labels that are missing in training.
        """
        self.texts += 1
        self.labels += len(gold) + unseen
        self.unseen += unseen
        self.first += any(label in gold for label in best[:1])
        self.five += sum(label in gold for label in best[:5])

    @property
    def p_at_1(self) -> float:
        return 100.0 * self.first / max(1, self.texts)

    @property
    def p_at_5(self) -> float:
        return 100.0 * self.five / max(1, 5 * self.texts)

    @property
    def r_at_5(self) -> float:
        return 100.0 * self.five / max(1, self.labels)

    def facts(self) -> dict[str, float]:
        """Return the counts and measures for a table or JSON."""
        return {
            "texts": self.texts,
            "labels": self.labels,
            "labels_unseen_in_training": self.unseen,
            "p_at_1": self.p_at_1,
            "p_at_5": self.p_at_5,
            "r_at_5": self.r_at_5,
        }
