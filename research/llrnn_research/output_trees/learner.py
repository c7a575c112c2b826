"""Learn a tree together with its layer (Jernite 2018, Algorithm 3.1).

At each node on an example's path, the layer gives the probabilities of all children. For each class and each node of
its path, their sums and the number of examples are kept (SumProbas and Counts). From time to time classes are
reassigned on this basis. When a class leaves a node, its statistics there are discarded, so there is one row of M
numbers for each class and level:

    S (D − 1) M · 8 bytes for a tree of depth D (a node's leaves are not chosen between: their order is irrelevant),
    Σ_s depth(s) · M · 8 bytes without a limit of depth.

With S = 250,000, M = 65, D = 3 that is 260 MB. (In float32 the sum of a frequent class would stop growing after some
millions of examples, unlike its count.)

In distributed training, each process counts its own examples. When the tree changes, the first process takes the sums
of all, and the others start from zero. A checkpoint, written by the first process, therefore lacks the counts of the
others since the last change. Changes are spread evenly over the first part of training (`Schedule`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from fairseq_llrnn.errors import DataError
from llrnn_research.output_trees.builders import check_masses, huffman_tree
from llrnn_research.output_trees.reassignment import complete_tree, reassigned, rebuilt
from llrnn_research.output_trees.tree import NONE, Tree


@dataclass(frozen=True)
class Reassignment:
    """The result of `TreeLearner.reassign`.

    Attributes:
        tree: the new tree, with as many nodes as the old one.
        origin: (I,) the old number of each internal node, NONE if it is new. None: no node has changed.
        moved: number of classes whose leaf has another parent.
    """

    tree: Tree
    origin: np.ndarray | None
    moved: int


class TreeLearner(nn.Module):
    """The statistics of a tree, and its reassignment.

    Buffers:
        sums: (R, M) float64 sums of probabilities. Rows begin[s] … begin[s + 1] belong to class s, from the root on.
        counts: (R,) int64 number of examples.
    """

    sums: Tensor
    counts: Tensor
    _begin: Tensor
    _depth: Tensor

    def __init__(self, tree: Tree, arity: int, depth: int | None = None) -> None:
        """
        Args:
            tree: from `start`, or from earlier reassignments.
            arity: M.
            depth: D (None: unlimited).

        Raises:
            DataError: the tree does not have this arity and depth.
        """
        super().__init__()
        self.arity, self.depth = arity, depth
        self.follow(tree)

    @staticmethod
    def start(class_weights: np.ndarray, arity: int, depth: int | None = None) -> Tree:
        """Return the first tree: classes of similar mass are near each other or, without a depth, Huffman's tree.

        A tree in random order is much worse, even after learning.

        Args:
            class_weights: (S,) masses of the classes, in any unit.

        Raises:
            OptionError: an arity below 2, a depth without room.
        """
        if depth is None:
            return huffman_tree(class_weights, arity)
        check_masses(class_weights)
        return complete_tree(np.argsort(-class_weights, kind="stable"), arity, depth)

    def follow(self, tree: Tree) -> None:
        """Replace the tree, e.g. by a checkpoint's, and reset the statistics.

        Raises:
            DataError: the tree does not have this arity and depth.
        """
        depths = tree.depth[tree.internal :]
        if self.depth is not None:
            nodes = (self.arity**self.depth - 1) // (self.arity - 1)
            above = (np.arange(1, nodes) - 1) // self.arity
            fits = tree.internal == nodes and (tree.parent[1:nodes] == above).all() and (depths == self.depth).all()
            expected = f"a complete one of depth {self.depth}"
        else:
            fits = tree.internal == max(1, -(-(tree.leaves - 1) // (self.arity - 1)))
            expected = "with the number of nodes of a learned tree"
        if not fits or tree.arity > self.arity:
            raise DataError(
                f"tree: expected one of arity {self.arity}, and {expected}, found one of arity {tree.arity} and depth "
                f"{tree.levels} with {tree.internal:,} nodes; give the arity and the depth of the training"
            )
        self.tree = tree
        self._set_rows(depths if self.depth is None else np.full(tree.leaves, self.depth - 1))
        rows = int(self._begin[-1])
        device = self._begin.device
        self.register_buffer("sums", torch.zeros(rows, self.arity, dtype=torch.float64, device=device))
        self.register_buffer("counts", torch.zeros(rows, dtype=torch.int64, device=device))

    def observe(self, labels: Tensor, nodes: Tensor, probabilities: Tensor) -> None:
        """Add the probabilities of examples at nodes of their paths to the statistics.

        Args:
            labels: (n,) classes of the examples.
            nodes: (n,) a node on the path of each.
            probabilities: (n, m) of the children, in the order of their slots, m ≤ M. Rows that are not finite are
                skipped.
        """
        probabilities = probabilities.detach().to(self.sums.dtype)
        depth = self._depth[nodes]
        use = probabilities.isfinite().all(1)
        if self.depth is not None:
            use &= depth < self.depth - 1
        rows = (self._begin[labels] + depth)[use]
        probabilities = probabilities[use]
        self.sums[:, : probabilities.size(1)].index_add_(0, rows, probabilities)
        self.counts.index_add_(0, rows, torch.ones_like(rows))

    def reassign(self) -> Reassignment:
        """Assign each class to the child that its statistics prefer, from the root down. All processes must call it."""
        rank = _rank()
        if rank is not None:
            distributed.all_reduce(self.sums)
            distributed.all_reduce(self.counts)
        sums, counts, begin = (x.cpu().numpy() for x in (self.sums, self.counts, self._begin))
        old, origin, column = self.tree, None, None
        if self.depth is None:
            new = rebuilt(old, self.arity, sums, counts, begin)
            tree, origin, column = new.tree, new.origin, new.column
        else:
            shape = old.leaves, self.depth - 1
            tree = reassigned(old, self.arity, self.depth, sums.reshape(*shape, self.arity), counts.reshape(shape))
        self._carry_over(tree, origin, column)
        if rank:
            self._forget()
        above = tree.parent[tree.internal :]
        came_from = above if origin is None else origin[above]
        return Reassignment(tree, origin, int((came_from != old.parent[old.internal :]).sum()))

    def _carry_over(self, tree: Tree, origin: np.ndarray | None, column: np.ndarray | None) -> None:
        """Take the new tree. Keep the rows of a class and a node that it still visits, and reset the others."""
        old, sums, counts, begin = self.tree, self.sums, self.counts, self._begin.cpu().numpy()
        self.follow(tree)
        new_begin = self._begin.cpu().numpy()
        classes, levels = self._classes(new_begin), self._levels(new_begin)
        nodes = tree.path[classes, levels]
        was = nodes if origin is None else origin[nodes]
        matching = np.flatnonzero((levels < np.diff(begin)[classes]) & (was != NONE))
        matching = matching[old.path[classes[matching], levels[matching]] == was[matching]]
        rows = torch.from_numpy(begin[classes[matching]] + levels[matching]).to(sums.device)
        into = torch.from_numpy(matching).to(sums.device)
        moved_sums = sums[rows]
        if column is not None:
            places = torch.from_numpy(column[nodes[matching]]).to(sums.device)
            moved_sums = moved_sums.gather(1, places.clamp_min(0)).masked_fill(places == NONE, 0.0)
        self.sums[into], self.counts[into] = moved_sums, counts[rows]

    def _forget(self) -> None:
        self.sums.zero_()
        self.counts.zero_()

    def _set_rows(self, depths: np.ndarray) -> None:
        device = self._begin.device if "_begin" in self._buffers else None
        begin = torch.from_numpy(np.concatenate([[0], np.cumsum(depths)]))
        depth = torch.from_numpy(self.tree.depth[: self.tree.internal])
        self.register_buffer("_begin", begin.to(device), persistent=False)
        self.register_buffer("_depth", depth.to(device), persistent=False)

    @staticmethod
    def _classes(begin: np.ndarray) -> np.ndarray:
        """Return the class of every row, (R,)."""
        return np.repeat(np.arange(len(begin) - 1), np.diff(begin))

    @staticmethod
    def _levels(begin: np.ndarray) -> np.ndarray:
        """Return the depth of every row's node, (R,)."""
        return np.arange(begin[-1]) - np.repeat(begin[:-1], np.diff(begin))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> TreeLearner:
        """Move to the model's device, but keep sums in float64."""
        exact = self.sums
        super()._apply(fn, recurse)
        if not exact.is_meta:
            self.sums = exact.to(self.sums.device)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Load the statistics; keep the current ones if the checkpoint has none (a tree that was fixed before).

        Raises:
            DataError: the statistics do not fit the tree.
        """
        for name, statistics in (("sums", self.sums), ("counts", self.counts)):
            saved = state_dict.setdefault(prefix + name, statistics)
            sound = isinstance(saved, Tensor) and saved.shape == statistics.shape and saved.dtype == statistics.dtype
            if not sound or not saved.isfinite().all() or (saved < 0).any():
                shape = f"{saved.dtype} of shape {tuple(saved.shape)}" if isinstance(saved, Tensor) else type(saved)
                raise DataError(
                    f"checkpoint: {prefix}{name}: expected numbers of at least 0, {statistics.dtype} of shape "
                    f"{tuple(statistics.shape)}, that fit its tree, found {shape}, or negative numbers; use a "
                    "checkpoint saved by fairseq"
                )
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if _rank():
            self._forget()


def _rank() -> int | None:
    """Return the rank of this process in distributed training, or None if it is the only one."""
    joined = distributed.is_available() and distributed.is_initialized()
    return distributed.get_rank() if joined and distributed.get_world_size() > 1 else None


@dataclass(frozen=True)
class Schedule:
    """`times` changes in `updates_per_epoch` updates, until the update `until`."""

    times: int
    updates_per_epoch: int
    until: float

    @classmethod
    def spread(cls, times: int, updates_per_epoch: int, updates: float, share: float) -> Schedule:
        """Return a schedule of `times` changes per epoch, in the first `share` of all updates (infinite: always)."""
        return cls(times, max(1, updates_per_epoch), updates * share)

    def is_due(self, updates: int) -> bool:
        """Return whether the tree must change after this number of updates."""
        done, before = (count * self.times // self.updates_per_epoch for count in (updates, updates - 1))
        return 0 < updates <= self.until and done > before
