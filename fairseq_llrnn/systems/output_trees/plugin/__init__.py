"""What the system adds to our models: options of a tree over the signatures, and the tree that is built from them.

    checkpoint_tree.py     the tree of a checkpoint, without its model
    sparse_gradients.py    llrnn_adam, llrnn_adagrad: optimisers of sparse gradients, of which an update needs few rows
"""

import os
from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Optional  # fairseq reads Optional[X], and not X | None

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from fairseq_llrnn.errors import check_unused_options
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.plugin.compat.safe_checkpoints import in_safe_loading
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, HEAD, Extension, non_default_options
from fairseq_llrnn.plugin.names import announce
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.output_trees import DEPTH, KINDS, REASSIGN, ROWS

if TYPE_CHECKING:
    from fairseq_llrnn.systems.output_trees.output_tree import OutputTree, TreeOptions
    from fairseq_llrnn.systems.output_trees.tree import Tree


@dataclass
class TreeConfig(FairseqDataclass):
    """Options of a tree over the signatures. None, as in old checkpoints: none."""

    output_tree: Optional[str] = field(
        default=None,
        metadata={
            "help": "predict a word by choices on the way to it in a tree of signatures, which is faster where there "
            f"are thousands of them: {', '.join(f'`{kind}`' for kind in KINDS)}, or a file with a tree"
        },
    )
    tree_arity: Optional[int] = field(
        default=None, metadata={"help": "most children of a node of the tree (default: as few as its depth allows)"}
    )
    tree_depth: Optional[int] = field(
        default=None,
        metadata={
            "help": f"most choices on the way to a word (default: {DEPTH}, or what --tree-arity needs); 0: a learned "
            "tree finds its own depth"
        },
    )
    tree_clusters: Optional[int] = field(
        default=None,
        metadata={"help": "number of clusters of --output-tree clusters (default: the square root of the signatures')"},
    )
    tree_rows: ChoiceEnum(ROWS) = field(  # type: ignore[valid-type]
        default=ROWS[0],
        metadata={
            "help": "weights of a node that is no word: `free`, its own, or `composed`, the mean of those of the words "
            "below it"
        },
    )
    tree_reassign: Optional[int] = field(
        default=None,
        metadata={
            "help": f"how often in an epoch --output-tree learned gives signatures new places (default: {REASSIGN})"
        },
    )
    tree_reassign_epochs: Optional[float] = field(
        default=None, metadata={"help": "in how many epochs it does so; later ones keep the tree (default: in all)"}
    )
    tree_sparse_gradients: bool = field(
        default=False,
        metadata={
            "help": "gradients of the weights of features are sparse tensors, so that an update costs what its words "
            "need, however many signatures there are; with --optimizer llrnn_adagrad or llrnn_adam"
        },
    )


class OutputTrees(Extension):
    """Heads that find a word by choices."""

    options: ClassVar = {HEAD: TreeConfig}
    modules: ClassVar = {"tree": "--output-tree: expected this option"}

    def head_arguments(
        self, args: Namespace | FairseqDataclass, task: Any, beside: int | None = None
    ) -> dict[str, Any]:
        tree = tree_of(args, task.prior)
        return {} if tree is None else {"normaliser": tree}

    def before_batch(self, head: LogLinearHead, model: Any, optimizer: Any) -> None:
        """Raises OptionError: an optimiser or processes that take no sparse gradients, where there are some."""
        if head.normaliser.sparse_gradients:
            from fairseq_llrnn.systems.output_trees.plugin.sparse_gradients import check_optimizer

            check_optimizer(optimizer, model)
        if getattr(head.normaliser, "begun", None) is not None:
            _begin_in_copy(optimizer, head.normaliser)


def _begin_in_copy(optimizer: Any, layer: Any) -> None:
    """Rows of new nodes begin as zeros also in the float32 copy of weights that --fp16 and --bf16 train.

    Args:
        optimizer: fairseq's, whose copy is one tensor for each weight, or a single one behind the other.
    """
    rows, layer.begun = layer.begun, None
    halves, copies = getattr(optimizer, "fp16_params", []), getattr(optimizer, "fp32_params", [])
    if isinstance(copies, dict):
        (flat,) = copies.values()
        copies = flat.split([half.numel() for half in halves])
    for half, exact in zip(halves, copies, strict=True):
        if half is layer.node_rows or half is layer.node_bias:
            exact.data.view_as(half)[rows] = 0.0


EXTENSIONS.append(OutputTrees())
announce(f"{__name__}.sparse_gradients")


def tree_of(args: Namespace | FairseqDataclass, prior: Prior) -> "OutputTree | None":
    """The normaliser of a head with a tree; None: none is asked for, as in older checkpoints, which lack the options.

    While a checkpoint is loaded, the tree is a place for the one that it holds.

    Raises:
        OptionError: sizes that no tree has, options of trees without one or for another kind. DataError: its files.
    """
    values = non_default_options(args, TreeConfig)
    if "output_tree" not in values:
        check_unused_options(values, "expected --output-tree beside it, found none; give it, or leave this option out")
        return None
    from fairseq_llrnn.systems.output_trees.output_tree import OutputTree, flat_tree

    options = TreeConfig(**values)
    tree = flat_tree(prior.output.num_classes) if in_safe_loading() else _tree(options, prior)
    return OutputTree(tree, str(options.tree_rows), options.tree_sparse_gradients)


def _tree(options: TreeConfig, prior: Prior) -> "Tree | TreeOptions":
    from fairseq_llrnn.systems.output_trees.output_tree import TreeOptions, class_fingerprint
    from fairseq_llrnn.systems.output_trees.tree import load_tree

    kind = str(options.output_tree)
    sizes = {
        name: getattr(options, f"tree_{name}") for name in ("arity", "depth", "clusters", "reassign", "reassign_epochs")
    }
    if kind not in KINDS and os.path.exists(kind):
        check_unused_options(
            {f"tree_{name}": value for name, value in sizes.items()},
            f"expected --output-tree with a kind of tree, found the file {kind}; leave one of them out",
        )
        return load_tree(kind, class_fingerprint(prior.symbols, prior.output.class_of), prior.output.num_classes)
    return TreeOptions(kind, **sizes)
