"""How many of the labels that a classifier names are right, in percent: P@1, P@5, R@5.

P@k is the share of right ones among k labels named for each text, R@k the share of all right labels that are among
them. As in fastText (Joulin et al. 2017), a text has several right labels; other than there, labels that training
lacks count: no answer finds them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass


@dataclass
class LabelHits:
    """Counts over texts."""

    texts: int = 0
    labels: int = 0  # right ones, those that training lacks included
    unseen: int = 0  # of them, those that training lacks
    first: int = 0  # texts whose best label is right
    five: int = 0  # right labels among the five best

    def add(self, best: Sequence[int] | Sequence[str], gold: Set[int] | Set[str], unseen: int = 0) -> None:
        """One text more.

        Args:
            best: its labels, the best one first. gold: the right ones. unseen: how many more that training lacks.
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
        """For a table, or JSON."""
        return {
            "texts": self.texts,
            "labels": self.labels,
            "labels_unseen_in_training": self.unseen,
            "p_at_1": self.p_at_1,
            "p_at_5": self.p_at_5,
            "r_at_5": self.r_at_5,
        }
