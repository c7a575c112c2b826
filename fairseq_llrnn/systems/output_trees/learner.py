"""A tree that is learned beside its layer (Jernite 2018, Algorithm 3.1).

At each node that an example's path visits, the layer gives the probabilities of all children; the sums of these, and
how many they are, are kept for each class and each node of its path, SumProbas and Counts. Now and then classes are
given new places by them. What a class has said of a node that it leaves is forgotten, so that there is one row of M
numbers for each class and level:

    S (D − 1) M · 8 bytes for a tree of depth D (of the leaves of one node none is chosen: they are in no order),
    Σ_s depth(s) · M · 8 bytes without a limit of depth.

With S = 250,000, M = 65, D = 3 that is 260 MB. (In float32 the sum of a frequent class would stand still after some
millions of examples, while its count grows.)

Of several processes that train together (torch.distributed), each counts its own examples, until the tree changes:
then the first takes the sums of all, and the others begin anew. So a checkpoint, which the first writes, lacks what
the others have counted since the last change. A tree is changed evenly in the first part of training, then never
(Schedule)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.output_trees.builders import check_masses, huffman_tree
from fairseq_llrnn.systems.output_trees.reassignment import complete_tree, reassigned, rebuilt
from fairseq_llrnn.systems.output_trees.tree import NONE, Tree


@dataclass(frozen=True)
class Reassignment:
    """What `TreeLearner.reassign` has done.

    Attributes:
        tree: the new one, with as many nodes as the old one.
        origin: (I,) the number that an internal node had in the old tree; NONE: it is new. None: nodes are as before.
        moved: number of classes whose leaf is below another node.
    """

    tree: Tree
    origin: np.ndarray | None
    moved: int


class TreeLearner(nn.Module):
    """The statistics of a tree, and what follows from them.

    Buffers:
        sums: (R, M) float64 of probabilities; rows of class s are begin[s] … begin[s + 1], from the root's on.
        counts: (R,) int64 number of examples.
    """

    sums: Tensor
    counts: Tensor
    _begin: Tensor
    _depth: Tensor

    def __init__(self, tree: Tree, arity: int, depth: int | None = None) -> None:
        """
        Args:
            tree: as `start` makes it, or as this class has made it of such a one.
            arity: M. depth: D; None: any.

        Raises:
            DataError: another tree.
        """
        super().__init__()
        self.arity, self.depth = arity, depth
        self.follow(tree)

    @staticmethod
    def start(class_weights: np.ndarray, arity: int, depth: int | None = None) -> Tree:
        """The first tree: classes of similar mass are near each other, or, without a depth, Huffman's.

        One in random order is much worse, even after it has learned.

        Args:
            masses: (S,) of the classes, in any unit.

        Raises:
            OptionError: an arity below 2, a depth without room.
        """
        if depth is None:
            return huffman_tree(class_weights, arity)
        check_masses(class_weights)
        return complete_tree(np.argsort(-class_weights, kind="stable"), arity, depth)

    def follow(self, tree: Tree) -> None:
        """Take another tree, such as a checkpoint's, and forget what was observed.

        Raises:
            DataError: no tree of this arity and depth.
        """
        depths = tree.depth[tree.internal :]
        if self.depth is not None:
            nodes = (self.arity**self.depth - 1) // (self.arity - 1)
            above = (np.arange(1, nodes) - 1) // self.arity
            fits = tree.internal == nodes and (tree.parent[1:nodes] == above).all() and (depths == self.depth).all()
            expected = f"a complete one of depth {self.depth}"
        else:
            fits = tree.internal == max(1, -(-(tree.leaves - 1) // (self.arity - 1)))
            expected = "as many nodes as one that is learned has"
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
        """Add what a layer says of some examples at some nodes of their paths.

        Args:
            labels: (n,) classes of the examples. nodes: (n,) one of the nodes on the path of each.
            probabilities: (n, m) of the children, in the order of their slots, m ≤ M. Rows that are not finite are left
                out.
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
        """Give each class the child that its statistics prefer, from the root down. All processes have to call it."""
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
        """Take the new tree; rows of a class and a node that it still visits are kept, others begin anew."""
        old, sums, counts, begin = self.tree, self.sums, self.counts, self._begin.cpu().numpy()
        self.follow(tree)
        new_begin = self._begin.cpu().numpy()
        classes, levels = self._classes(new_begin), self._levels(new_begin)
        nodes = tree.path[classes, levels]
        was = nodes if origin is None else origin[nodes]
        there = np.flatnonzero((levels < np.diff(begin)[classes]) & (was != NONE))
        there = there[old.path[classes[there], levels[there]] == was[there]]
        rows = torch.from_numpy(begin[classes[there]] + levels[there]).to(sums.device)
        into = torch.from_numpy(there).to(sums.device)
        kept = sums[rows]
        if column is not None:
            places = torch.from_numpy(column[nodes[there]]).to(sums.device)
            kept = kept.gather(1, places.clamp_min(0)).masked_fill(places == NONE, 0.0)
        self.sums[into], self.counts[into] = kept, counts[rows]

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
        """(R,) class of every row."""
        return np.repeat(np.arange(len(begin) - 1), np.diff(begin))

    @staticmethod
    def _levels(begin: np.ndarray) -> np.ndarray:
        """(R,) depth of the node of every row."""
        return np.arange(begin[-1]) - np.repeat(begin[:-1], np.diff(begin))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> TreeLearner:
        """Follow the model to its device, but never into half precision: sums grow."""
        exact = self.sums
        super()._apply(fn, recurse)
        self.sums = exact.to(self.sums.device)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Without statistics, as of a tree that was fixed before, its own count.

        Raises:
            DataError: those of another tree than that which is followed.
        """
        for name, statistics in (("sums", self.sums), ("counts", self.counts)):
            saved = state_dict.setdefault(prefix + name, statistics)
            if name == "sums" and isinstance(saved, Tensor) and saved.dtype == torch.float32:  # of earlier versions
                saved = state_dict[prefix + name] = saved.double()
            sound = isinstance(saved, Tensor) and saved.shape == statistics.shape and saved.dtype == statistics.dtype
            if not sound or not saved.isfinite().all() or (saved < 0).any():
                shape = f"{saved.dtype} of shape {tuple(saved.shape)}" if isinstance(saved, Tensor) else type(saved)
                raise DataError(
                    f"checkpoint: {prefix}{name}: expected numbers from 0 on, {statistics.dtype} of shape "
                    f"{tuple(statistics.shape)}, for the tree that it holds, found {shape}, or others; use a "
                    "checkpoint that fairseq saved"
                )
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if _rank():
            self._forget()


def _rank() -> int | None:
    """Number of this process among those that train together; None where it is alone."""
    joined = distributed.is_available() and distributed.is_initialized()
    return distributed.get_rank() if joined and distributed.get_world_size() > 1 else None


@dataclass(frozen=True)
class Schedule:
    """So many times in `updates_per_epoch` updates, up to the update `until`."""

    times: int
    updates_per_epoch: int
    until: float

    @classmethod
    def spread(cls, times: int, updates_per_epoch: int, updates: float, share: float) -> Schedule:
        """A number of times an epoch, in the first `share` of all updates (infinite: always)."""
        return cls(times, max(1, updates_per_epoch), updates * share)

    def is_due(self, updates: int) -> bool:
        """Whether the tree is to be changed after so many updates."""
        done, before = (count * self.times // self.updates_per_epoch for count in (updates, updates - 1))
        return 0 < updates <= self.until and done > before
