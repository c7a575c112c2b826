"""Options of our models for an output tree, and the tree built from them.

    checkpoint_tree.py     the tree of a checkpoint, without its model
    sparse_gradients.py    llrnn_adam, llrnn_adagrad: optimisers for sparse gradients, which update few rows
"""

import os
from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Optional  # fairseq reads Optional[X], and not X | None

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics

from fairseq_llrnn.errors import check_unused_options
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.plugin.compat.safe_checkpoints import in_safe_loading
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, HEAD, Extension, non_default_options
from fairseq_llrnn.plugin.names import announce
from fairseq_llrnn.prior.prior import Prior
from llrnn_research.output_trees import DEPTH, KINDS, REASSIGN, ROWS

if TYPE_CHECKING:
    from llrnn_research.output_trees.output_tree import OutputTree, TreeOptions
    from llrnn_research.output_trees.tree import Tree


@dataclass
class TreeConfig(FairseqDataclass):
    """Options of a tree over the signatures. Older checkpoints lack them, which equals None."""

    output_tree: Optional[str] = field(
        default=None,
        metadata={
            "help": "predict a word by choices along its path in a tree of signatures, faster with thousands of them: "
            f"{', '.join(f'`{kind}`' for kind in KINDS)}, or a tree file"
        },
    )
    tree_arity: Optional[int] = field(
        default=None, metadata={"help": "most children of a node (default: the least that the depth allows)"}
    )
    tree_depth: Optional[int] = field(
        default=None,
        metadata={
            "help": f"most choices on the path to a word (default: {DEPTH}, or the least for --tree-arity); 0: any "
            "number (learned trees)"
        },
    )
    tree_clusters: Optional[int] = field(
        default=None,
        metadata={"help": "number of clusters of --output-tree clusters (default: √signatures, rounded up)"},
    )
    tree_rows: ChoiceEnum(ROWS) = field(  # type: ignore[valid-type]
        default=ROWS[0],
        metadata={
            "help": "weights of an internal node: `free`, its own, or `composed`, the mean weights of the words below"
        },
    )
    tree_reassign: Optional[int] = field(
        default=None,
        metadata={
            "help": f"how often per epoch --output-tree learned reassigns signatures (default: {REASSIGN})"
        },
    )
    tree_reassign_epochs: Optional[float] = field(
        default=None, metadata={"help": "epochs with reassignments; later ones keep the tree (default: all)"}
    )
    tree_sparse_gradients: bool = field(
        default=False,
        metadata={
            "help": "sparse gradients of feature weights: the cost of an update depends on its words and not on the "
            "number of signatures; needs --optimizer llrnn_adagrad or llrnn_adam"
        },
    )


class OutputTrees(Extension):
    """Heads with an output tree."""

    options: ClassVar = {HEAD: TreeConfig}
    modules: ClassVar = {"tree": "--output-tree: expected this option"}

    def head_arguments(self, args: Namespace | FairseqDataclass, task: Any) -> dict[str, Any]:
        tree = tree_of(args, task.prior)
        return {} if tree is None else {"normaliser": tree}

    def before_batch(
        self, head: LogLinearHead, model: Any, optimizer: Any, updates: int, updates_per_epoch: int, has_gradient: bool
    ) -> None:
        """Change a learned tree if that is due. Prepare sparse gradients and rows of new nodes.

        Raises:
            OptionError: the optimiser or the distributed training does not support the model's sparse gradients.
        """
        layer: Any = head.normaliser
        if layer.counts:
            layer.counting = has_gradient
            if (moved := layer.update_if_due(updates, updates_per_epoch)) is not None:
                metrics.log_scalar(f"{layer.name}_moved", moved / head.prior.output.num_classes, 1, round=4)
        if layer.sparse_gradients:
            from llrnn_research.output_trees.plugin.sparse_gradients import check_optimizer

            check_optimizer(optimizer, model)
        if getattr(layer, "new_rows", None) is not None:
            _begin_in_copy(optimizer, layer)


def _begin_in_copy(optimizer: Any, layer: Any) -> None:
    """Set rows of new nodes to zero also in the float32 copy of weights that --fp16 and --bf16 train.

    Args:
        optimizer: of fairseq; its copy is one tensor per weight, or a single tensor of all weights.
    """
    rows, layer.new_rows = layer.new_rows, None
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
    """Return the normaliser of a head with a tree, or None without --output-tree, as in older checkpoints.

    While a checkpoint is loaded, the tree is a placeholder for the checkpoint's tree.

    Raises:
        OptionError: impossible sizes, or options without --output-tree or for another kind.
        DataError: invalid tree file.
    """
    values = non_default_options(args, TreeConfig)
    if "output_tree" not in values:
        check_unused_options(values, "needs --output-tree; add it, or leave this option out")
        return None
    from llrnn_research.output_trees.output_tree import OutputTree, flat_tree

    options = TreeConfig(**values)
    tree = flat_tree(prior.output.num_classes) if in_safe_loading() else _tree(options, prior)
    return OutputTree(tree, str(options.tree_rows), options.tree_sparse_gradients)


def _tree(options: TreeConfig, prior: Prior) -> "Tree | TreeOptions":
    from llrnn_research.output_trees.output_tree import TreeOptions, class_fingerprint
    from llrnn_research.output_trees.tree import load_tree

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
