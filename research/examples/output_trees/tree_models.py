"""Networks and output layers of the comparison. Every row of the tables is one network and one output.

Sizes: B sentences, T their length, N targets of a batch, V words, H hidden width. Everything is plain PyTorch: the
network passes hidden states (N, H) to the output, which returns log p of the targets. Every word is a signature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_llrnn import Prior
from fairseq_llrnn.backgrounds.class_weights import class_log_sums
from fairseq_llrnn.output.normalisers import ExactRows, LogLinearOutput
from fairseq_llrnn.plugin.models.llrnn_lm import LogBilinearNetwork
from llrnn_research.output_trees.builders import (
    cluster_tree,
    clustering_tree,
    huffman_tree,
    least_arity,
    random_tree,
)
from llrnn_research.output_trees.learner import Schedule, TreeLearner
from llrnn_research.output_trees.reassignment import complete_tree
from llrnn_research.output_trees.tree import Tree
from llrnn_research.output_trees.tree_layer import TreeLayer
from llrnn_research.output_trees.tree_log_linear import TreeOutput
from llrnn_research.output_trees.tree_scores import VisitProbabilities

WIDTH = 200
CONTEXT = 4  # words that the log-bilinear model sees
ARITY, DEPTH = 65, 3  # of the trees, as in the thesis
TIMES = 50  # that a learned tree is changed, in an epoch
CUTOFFS = (500, 2500, 10000)  # of the adaptive softmax; `time --cutoffs` tries others


class Network(nn.Module):
    """Map words to hidden states. Gradients of word vectors are sparse: an update costs only the words of its batch."""

    def __init__(self, words: int, kind: str, width: int = WIDTH) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width, sparse=True)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.body: nn.Module
        if kind == "lbl":
            self.body = LogBilinearNetwork(width, width, CONTEXT)
        else:
            self.body = nn.LSTM(width, width, batch_first=True)

    def forward(self, previous: Tensor) -> Tensor:
        """Map the tokens before each position, (B, T), to (B, T, H)."""
        hidden = self.body(self.embedding(previous))
        return hidden[0] if isinstance(hidden, tuple) else hidden


class Output(nn.Module):
    """The interface of an output layer."""

    def log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return log p of the targets: (N, H), (N,) -> (N,)."""
        raise NotImplementedError

    def begin_sparse_gradients(self) -> None:
        """Use sparse gradients, which are equivalent for Adagrad: an update then costs only the rows of its batch."""

    def updated(self, done: int, updates: int) -> int:
        """Run after update number `done` of an epoch of so many, and return the number of words that have moved."""
        return 0


class Flat(Output):
    """All words over the unigram: the log-linear layer with one feature per word."""

    log_mass: Tensor  # (1, S)

    def __init__(self, prior: Prior, width: int) -> None:
        super().__init__()
        class_of = torch.from_numpy(prior.output.class_of.copy())
        self.output = LogLinearOutput(prior.output.features, class_of, width, initial_scale=None)
        weights = torch.from_numpy(np.array(prior.log_weights)).unsqueeze(0)
        self.register_buffer("log_mass", class_log_sums(weights, class_of, self.output.rows.num_rows))

    def log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return ExactRows(self.output).log_prob(hidden, self.output.class_of[targets], self.log_mass, None)


class FlatReduced(Flat):
    """The same with bfloat16 products in training. Sums over words stay in float32."""

    def log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        return super().log_probs(hidden.to(torch.bfloat16) if self.training else hidden, targets)


class Adaptive(Output):
    """torch's adaptive softmax (Grave et al. 2017). Words are numbered by frequency, as in fairseq's dictionaries."""

    def __init__(self, words: int, width: int, cutoffs: tuple[int, ...] = CUTOFFS) -> None:
        super().__init__()
        inside = [cutoff for cutoff in cutoffs if cutoff < words - 1] or [words // 2]
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(width, words, inside, div_value=4.0, head_bias=True)

    def log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        found: Tensor = self.layer(hidden, targets).output
        return found


class OverTree(Flat):
    """A choice among the children of each node on the path to a word."""

    def __init__(self, prior: Prior, width: int, tree: Callable[[np.ndarray], Tree]) -> None:
        """tree: made from the weights of the words (S,)."""
        super().__init__(prior, width)
        log_mass = self.log_mass.squeeze(0)
        self.layer = TreeLayer(tree(log_mass.exp().double().numpy()), width, log_mass)

    def log_probs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        classes, made = self.output.class_of[targets], TreeOutput(self.output, self.layer)
        return made.class_log_prob(hidden, classes, self.log_mass, visited=self.visited())

    def begin_sparse_gradients(self) -> None:
        self.layer.sparse_gradients = True

    def visited(self) -> list[VisitProbabilities] | None:
        """A collector for the probabilities of children, or None."""
        return None


class Learned(OverTree):
    """A tree that is learned together with the layer (Jernite 2018, Algorithms 3.1 and 3.3)."""

    def __init__(
        self,
        prior: Prior,
        width: int,
        order: Callable[[np.ndarray], np.ndarray],
        share: float,
        sizes: tuple[int, int] = (ARITY, DEPTH),
    ) -> None:
        """
        Args:
            order: of the words (S,) in the first tree, by their weights.
            share: fraction of the updates in which it changes.
            sizes: arity and depth.
        """
        super().__init__(prior, width, lambda class_weights: complete_tree(order(class_weights), *sizes))
        self.share = share
        self.learner = TreeLearner(self.layer.tree, *sizes)
        self.seen: list[VisitProbabilities] = []

    def visited(self) -> list[VisitProbabilities] | None:
        return self.seen if self.training else None

    def updated(self, done: int, updates: int) -> int:
        for visit in self.seen:
            self.learner.observe(visit.labels, visit.nodes, visit.probabilities)
        self.seen.clear()
        if not Schedule.spread(TIMES, updates, updates, self.share).is_due(done):
            return 0
        change = self.learner.reassign()
        self.layer.move(change.tree)
        return change.moved


@dataclass(frozen=True)
class World:
    """The inputs of outputs."""

    prior: Prior
    words: int  # V
    embeddings: Callable[[], Tensor]  # (V, H) of a trained network, for the tree that is clustered
    seed: int


def clustered(world: World) -> Tree:
    """Return a tree over the word vectors of a trained network."""
    vectors = np.zeros((world.prior.output.features.num_rows, WIDTH), dtype=np.float32)
    vectors[world.prior.output.class_of] = world.embeddings().numpy()
    return clustering_tree(vectors, ARITY, DEPTH, world.seed)


def sorted_by_mass(class_weights: np.ndarray) -> np.ndarray:
    return np.argsort(-class_weights, kind="stable")


OUTPUTS: dict[str, Callable[[World], Output]] = {
    "flat": lambda world: Flat(world.prior, WIDTH),
    "flat-bf16": lambda world: FlatReduced(world.prior, WIDTH),
    "adaptive": lambda world: Adaptive(world.words, WIDTH),
    "clusters": lambda world: OverTree(world.prior, WIDTH, cluster_tree),
    "huffman": lambda world: OverTree(world.prior, WIDTH, lambda class_weights: huffman_tree(class_weights, ARITY)),
    "clustering": lambda world: OverTree(world.prior, WIDTH, lambda class_weights: clustered(world)),
    "random": lambda world: OverTree(
        world.prior, WIDTH, lambda class_weights: random_tree(len(class_weights), ARITY, DEPTH, world.seed)
    ),
    "learned": lambda world: Learned(
        world.prior, WIDTH, lambda class_weights: np.random.default_rng(world.seed).permutation(len(class_weights)), 1.0
    ),
    "learned-sorted": lambda world: Learned(world.prior, WIDTH, sorted_by_mass, 0.5),
    "learned-clusters": lambda world: Learned(
        world.prior, WIDTH, sorted_by_mass, 0.5, (least_arity(world.words, 2), 2)
    ),
}
