"""Lookup tables of a tree over the signatures, and rows of its internal nodes.

Sizes: S signatures (the leaves), I internal nodes, D levels, M maximal number of children, H hidden width. Nodes are
numbered as in tree.py: internal ones first, then the leaves. Source: Jernite 2018, §2.3 and chapter 3. There each child
of a node has its own row. Here a leaf has the row of its signature, which is composed of features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.output.normalisers import Normaliser
from llrnn_research.output_trees import ROWS
from llrnn_research.output_trees.tree import NONE, Tree


@dataclass(frozen=True)
class CachedMasses:
    """Masses of nodes, cached with the tensor they were computed from."""

    log_mass: Tensor  # (1, S)
    version: int
    class_weights: Tensor  # (1, I + S)

    def is_of(self, log_mass: Tensor) -> bool:
        """Return whether they belong to this tensor, (1, S): the same memory, not modified since."""
        own = self.log_mass
        same = own is log_mass or (  # the usual case first
            own.data_ptr() == log_mass.data_ptr()
            and own.dtype == log_mass.dtype
            and own.stride(1) == log_mass.stride(1)
        )
        return same and self.version == log_mass._version


class TreeTables(Normaliser):
    """The tree of an output layer, and the rows and biases of its internal nodes.

    Args:
        tree: over S signatures.
        log_mass: (S,) of the background without context, the weights for composed rows.
        rows: "free": one parameter row per internal node, initialised with zeros. "composed": the mean of the rows of
            all leaves below, weighted by the background without context.

    With `sparse_gradients` = True and free rows, the feature weights have sparse gradients. If the optimiser supports
    them, the cost of a step depends on its targets and not on the number of features.
    """

    name, option = "tree", "--output-tree"
    rows_are_features = False

    parent: Tensor  # (I + S,) −1 for the root; the only table in checkpoints
    child: Tensor  # (I + S − 1,) siblings are contiguous
    place: Tensor  # (I + S,) of a node among its siblings
    filled: Tensor  # (C,) nodes of `child` that are leaves or have leaves below
    begin: Tensor  # (I + 1,) index in `filled` of a node's first child
    column: Tensor  # (I + S,) of a node among its siblings in `filled`
    widths: Tensor  # (I,)
    chosen: Tensor  # (S, D) children chosen on the way to each leaf, padded with −1
    row_of: Tensor | None  # (I,) index of a node's row, in a learned tree whose nodes change their numbers
    log_mass: Tensor  # (S,)
    mean_first: Tensor  # for composed rows: the leaves below each internal node, and their weights
    mean_leaves: Tensor
    mean_weights: Tensor

    def __init__(self, tree: Tree, hidden_size: int, log_mass: Tensor, rows: str = "free") -> None:
        super().__init__()
        if rows not in ROWS:
            raise ValueError(f"rows: expected one of {ROWS}, found {rows!r}")
        self.rows = rows
        self.register_buffer("parent", torch.from_numpy(tree.parent.copy()))
        self.register_buffer("log_mass", log_mass.detach().clone(), persistent=False)
        self.register_buffer("row_of", None)
        self.new_rows: Tensor | None = None  # rows of nodes added by the last change
        self.leaves, self.internal = tree.leaves, tree.internal
        self._set_tables(tree)
        if rows == "free":
            self.node_rows = nn.Parameter(torch.zeros(tree.internal, hidden_size))
            self.node_bias = nn.Parameter(torch.zeros(tree.internal))

    def _become(self, tree: Tree) -> None:
        """Take a tree with another number of nodes, and initialise its rows."""
        self.leaves, self.internal = tree.leaves, tree.internal
        self.parent = torch.from_numpy(tree.parent.copy()).to(self.parent.device)
        self._set_tables(tree)
        if self.rows == "free":
            self.node_rows = nn.Parameter(self.node_rows.new_zeros(tree.internal, self.node_rows.size(1)))
            self.node_bias = nn.Parameter(self.node_bias.new_zeros(tree.internal))

    def move(self, tree: Tree, origin: np.ndarray | None = None) -> None:
        """Replace the tree by one with as many nodes.

        Args:
            origin: (I,) the old number of each node (NONE: it is new, and its row is reset). None: no node has changed.
        """
        if (tree.leaves, tree.internal) != (self.leaves, self.internal):
            raise ValueError(
                f"tree: expected {self.leaves} leaves and {self.internal} internal nodes, found {tree.leaves} and "
                f"{tree.internal}"
            )
        self.parent.copy_(torch.from_numpy(tree.parent))
        if origin is not None and self.row_of is not None:
            self._keep_rows(torch.from_numpy(origin).to(self.parent.device), self.row_of)
        self._set_tables(tree)

    @torch.no_grad()
    def _keep_rows(self, origin: Tensor, row_of: Tensor) -> None:
        """Map nodes to their old rows, so that rows and their optimiser state need not be moved."""
        has_row = origin != NONE
        left = torch.ones_like(has_row).index_fill(0, row_of[origin[has_row]], False).nonzero().squeeze(1)
        self.row_of = row_of[origin.clamp_min(0)].masked_scatter(~has_row, left)
        self.node_rows[left], self.node_bias[left] = 0.0, 0.0
        self.new_rows = left

    def _set_tables(self, tree: Tree) -> None:
        self.tree = tree
        self.cache: CachedMasses | None = None
        self.levels, self.arity = tree.levels, tree.arity
        # the internal nodes of each depth; the last ones may be empty
        inner = [nodes[nodes < tree.internal] for nodes in tree.by_depth]
        self.spans = [(int(nodes[0]), int(nodes[-1]) + 1) for nodes in inner if len(nodes)]
        # an empty node is never chosen and needs no score
        filled = tree.child[tree.below[tree.child] > 0]
        num_filled = np.bincount(tree.parent[filled], minlength=tree.internal)
        begin = np.concatenate([[0], np.cumsum(num_filled)])
        column = np.zeros_like(tree.parent)
        column[filled] = np.arange(len(filled)) - begin[tree.parent[filled]]
        tables = {"child": tree.child, "place": tree.place, "chosen": tree.chosen}
        tables |= {"filled": filled, "begin": begin, "column": column}
        for name, table in tables.items():
            self._set(name, torch.from_numpy(table.copy()))
        # nodes are padded to the largest number of children within the same power of two (tree_visits.py)
        children = torch.from_numpy(num_filled)
        power = children.clamp_min(1).double().log2().ceil().long()
        most = torch.zeros(64, dtype=torch.int64).scatter_reduce(0, power, children, "amax")
        self._set("widths", most[power])
        self.root_width = int(most[power[0]])
        if self.rows == "composed":
            self._set_means(tree)

    def _set(self, name: str, table: Tensor) -> None:
        self.register_buffer(name, table.to(self.parent.device), persistent=False)

    def _set_means(self, tree: Tree) -> None:
        """Set the leaves of each internal node, and their shares in the node's background mass."""
        span, order = torch.from_numpy(tree.span[: tree.internal]), torch.from_numpy(tree.order.copy())
        sizes = span[:, 1] - span[:, 0]
        first = functional.pad(sizes.cumsum(0), (1, 0))
        step = torch.arange(int(first[-1])) + (span[:, 0] - first[:-1]).repeat_interleave(sizes)
        leaves, owner = order[step], torch.arange(tree.internal).repeat_interleave(sizes)
        mass = self.log_mass.double().cpu().exp()[leaves]
        total = torch.zeros(tree.internal, dtype=torch.float64).index_add(0, owner, mass)[owner]
        weights = torch.where(total > 0.0, mass / total, 1.0 / sizes[owner])
        self._set("mean_first", first)
        self._set("mean_leaves", leaves)
        self._set("mean_weights", weights.float())

    def internal_rows(self, composed: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        """Return rows (I, H') and biases (I,) of the internal nodes as children; the root's are unused.

        Args:
            composed: rows (S, H') and biases (S,) of all signatures, required for composed rows. Free rows are padded
                with zeros to H'.
        """
        if self.rows == "composed":
            if composed is None:
                raise ValueError("composed: composed rows of nodes need the rows of all signatures")
            rows, bias = composed
            return self._mean(rows), self._mean(bias.unsqueeze(1)).squeeze(1)
        rows, bias = self.node_rows, self.node_bias
        if self.row_of is not None:
            rows, bias = rows[self.row_of], bias[self.row_of]
        if composed is not None:
            bias = bias.to(composed[1].dtype)
            if composed[0].size(1) > rows.size(1):
                rows = functional.pad(rows, (0, composed[0].size(1) - rows.size(1)))
        return rows, bias.to(torch.promote_types(bias.dtype, torch.float32))

    def _mean(self, rows: Tensor) -> Tensor:
        weights = self.mean_weights.to(rows.dtype)
        return functional.embedding_bag(
            self.mean_leaves, rows, self.mean_first, mode="sum", per_sample_weights=weights, include_last_offset=True
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> TreeTables:
        """Move to the model's device, but keep the precision of log masses, from which means are recomputed."""
        exact = self.log_mass
        super()._apply(fn, recurse)
        if not exact.is_meta:
            self.log_mass = exact.to(self.log_mass.device)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        saved = state_dict.get(prefix + "row_of")
        if saved is not None:
            self._check_order(saved)
        if saved is None and self.row_of is not None:
            state_dict[prefix + "row_of"] = torch.arange(self.internal)
        elif saved is not None and self.row_of is None:  # a fixed tree has its rows in order
            del state_dict[prefix + "row_of"]
            for name in [prefix + name for name in ("node_rows", "node_bias") if prefix + name in state_dict]:
                state_dict[name] = state_dict[name][saved]
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if prefix + "parent" in state_dict:
            self._set_tables(Tree.from_parents(self.parent.cpu().numpy(), self.leaves))

    def _check_order(self, saved: object) -> None:
        whole = isinstance(saved, Tensor) and saved.dtype == torch.int64 and saved.shape == (self.internal,)
        if not isinstance(saved, Tensor) or not whole or not saved.sort()[0].cpu().equal(torch.arange(self.internal)):
            raise DataError(
                f"the checkpoint: expected a permutation of the rows of the {self.internal:,} nodes of its tree, found "
                "other values; use a checkpoint saved by fairseq"
            )
