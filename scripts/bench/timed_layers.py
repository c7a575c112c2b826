"""Output layers over V words for benchmarks: ours, with trees, softmax, fused and adaptive softmaxes.

Sizes: N positions, H hidden, V words, M words with an indicator feature, S signatures, F features.

All get the same hidden states (N, H) and the same targets, sampled from a Zipf unigram over V words, numbered by
frequency. The prior is synthetic and has the shape of French UD: M signatures of single words, 400 morphological ones
over 60 features with Zipf-distributed sizes, and the unigram as background.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from measuring import timed
from torch import Tensor, nn
from torch.nn import functional
from zipf_law import zipf

from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.normalisers import ExactRows, LogLinearOutput
from llrnn_research.output_trees.builders import cluster_tree, huffman_tree
from llrnn_research.output_trees.tree import NONE, Tree
from llrnn_research.output_trees.tree_layer import TreeLayer
from llrnn_research.output_trees.tree_log_linear import TreeOutput

N, H, M = 2048, 256, 2500
USUAL = 42_500  # words, as many as French UD has
SPECIALS, MORPHOLOGICAL, FEATURES = 4, 400, 60
CUTOFFS = ([200, 2000], [200, 1000, 8000], [500, 2000, 10_000], [500, 5000], [2000, 10_000], [4000, 20_000])
ARITIES = (8, 16, 32)  # of Huffman trees
EVEN, FILLED = (54, 256, 512), (256, 512, 725)  # children of the root, of trees of two levels
FACTORS = (4.0, 2.0, 1.0)
HOST_CUTOFFS, HOST_FACTOR = [10_000, 50_000, 200_000], 4.0  # fairseq's lstm_lm


@dataclass
class Contestant:
    """A computation of the sum of the losses of all targets from `hidden`."""

    name: str
    module: nn.Module
    loss: Callable[[], Tensor]
    hidden: Tensor

    def seconds(self) -> float:
        """Return the time of one forward and backward pass. Dropping the earlier gradients is not measured."""
        self.drop_gradients()
        return timed(self.step, self.hidden.device)

    def step(self) -> None:
        self.loss().backward()

    def compiled(self) -> "Contestant":
        """Return the same computation, fused by torch.compile at the first step."""
        return replace(self, name=f"{self.name}, compiled", loss=torch.compile(self.loss))

    def in_a_graph(self) -> "InAGraph":
        """Return the same computation in one CUDA graph, whose operations all start at once."""
        return InAGraph(f"{self.name}, one CUDA graph", self.module, self.loss, self.hidden)

    def drop_gradients(self) -> None:
        self.hidden.grad = None
        self.module.zero_grad(set_to_none=True)


@dataclass
class InAGraph(Contestant):
    """A computation in a CUDA graph. The graph is recorded at the first step, keeps its memory and the place of its
    gradients.
    """

    graph: torch.cuda.CUDAGraph | None = None

    def step(self) -> None:
        if self.graph is None:
            self.graph = self._recorded()
        self.graph.replay()

    def _recorded(self) -> torch.cuda.CUDAGraph:
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # outside the graph libraries take the scratch space that they keep
            for _ in range(3):
                self.drop_gradients()
                self.loss().backward()
        torch.cuda.current_stream().wait_stream(stream)
        self.drop_gradients()
        with torch.cuda.graph(graph):
            self.loss().backward()
        return graph


# ---- the synthetic prior ---------------------------------------------------------------------------------


def signature_table(rng: np.random.Generator) -> FeatureTable:
    """Return the rows of the specials, of M single words, and of the morphological classes: S rows."""
    combinations: set[tuple[int, ...]] = set()
    while len(combinations) < MORPHOLOGICAL:
        combinations.add(tuple(sorted(rng.choice(FEATURES, rng.integers(2, 8), replace=False).tolist())))
    classes = [{f"Morph:{f}": 1.0 for f in combination} for combination in sorted(combinations)]
    rows = [{f"SPECIAL:{i}": 1.0} for i in range(SPECIALS)]
    rows += [{f"TOPFORM:{i}": 1.0} | classes[rng.integers(MORPHOLOGICAL)] for i in range(M)]
    rows += [{"NOTTOP": 1.0} | row for row in classes]
    return FeatureTable.from_rows(rows)


def classes_of_words(words: int, rng: np.random.Generator) -> np.ndarray:
    """Return (V,) signatures: frequent words have their own, the others share the morphological classes."""
    own = SPECIALS + M
    one_each = np.arange(MORPHOLOGICAL)
    others = rng.choice(MORPHOLOGICAL, words - own - MORPHOLOGICAL, p=zipf(MORPHOLOGICAL))
    return np.concatenate([np.arange(own), own + one_each, own + others])


def two_levels(leaves: int, nodes: int, filled: bool = False) -> Tree:
    """Return a tree with leaves in random order below so many nodes: equally many below each, or as many as there are
    nodes.
    """
    order = np.random.default_rng(1).permutation(leaves)
    below = order // nodes if filled else order * nodes // leaves
    return Tree.from_parents(np.concatenate([[NONE], np.zeros(nodes, dtype=np.int64), 1 + below]), leaves)


# ---- contestants -----------------------------------------------------------------------------------------


@dataclass
class Setting:
    """The shared data of all contestants of one size."""

    words: int
    device: torch.device
    dtype: torch.dtype
    positions: int = field(default_factory=lambda: N)
    width: int = field(default_factory=lambda: H)

    @classmethod
    def of(cls, words: int, args: argparse.Namespace, *size: int) -> "Setting":
        return cls(words, torch.device(args.device), getattr(torch, args.dtype), *size)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(1)
        torch.manual_seed(1)
        self.targets = torch.from_numpy(self.rng.choice(self.words, self.positions, p=zipf(self.words))).to(self.device)
        self.hidden = torch.randn(self.positions, self.width, device=self.device).to(self.dtype).requires_grad_()

    def log_linear(self) -> Contestant:
        table = signature_table(self.rng)
        class_of = torch.from_numpy(classes_of_words(self.words, self.rng))
        log_unigram = torch.from_numpy(np.log(zipf(self.words)))
        background = StaticBackground(class_of, table.num_rows, log_unigram).float().to(self.device)
        layer = LogLinearOutput(table, class_of, self.width).to(self.device, self.dtype)
        state = background.start(self.positions)

        def loss() -> Tensor:
            view, is_counted = background.view(state), torch.ones_like(self.targets, dtype=torch.bool)
            classes, share = view.locate(self.targets)
            arguments = self.hidden, classes, view.class_mass, share, None, is_counted
            return -ExactRows(layer).log_prob(*arguments).sum()

        self.prior = layer, background
        return Contestant(f"log-linear (S = {table.num_rows:,})", layer, loss, self.hidden)

    def tree(self, name: str, tree: Tree, rows: str = "free") -> Contestant:
        """Return a tree over the signatures of `log_linear`, with its parameters."""
        layer, background = self.prior
        state = background.start(self.positions)
        nodes = TreeLayer(tree, self.width, background.class_log_mass.cpu(), rows).to(self.device, self.dtype)

        def loss() -> Tensor:
            view = background.view(state)
            classes, share = view.locate(self.targets)
            mass = view.class_mass.shared
            return -(TreeOutput(layer, nodes).class_log_prob(self.hidden, classes, mass) + share).sum()

        name = f"tree: {name}, {tree.internal:,} nodes, {tree.levels} levels"
        return Contestant(name, nn.ModuleList([layer, nodes]), loss, self.hidden)

    def trees(self) -> list[Contestant]:
        """Return the fastest Huffman tree, two levels of clusters, and two levels in random order."""
        _, background = self.prior
        class_weights = background.class_log_mass.double().exp().cpu().numpy()
        timed: list[tuple[float, int, Contestant]] = []
        for arity in ARITIES:
            candidate = self.tree(f"Huffman, arity {arity}", huffman_tree(class_weights, arity))
            candidate.seconds()
            timed.append((candidate.seconds(), arity, candidate))
        clusters = cluster_tree(class_weights)
        composed = self.tree("clusters, rows composed", clusters, "composed")
        chosen = [min(timed)[2], self.tree("clusters", clusters), composed]
        chosen += [self.tree(f"{arity} nodes, even", two_levels(len(class_weights), arity)) for arity in EVEN]
        return chosen + [
            self.tree(f"{arity} nodes, filled", two_levels(len(class_weights), arity, True)) for arity in FILLED
        ]

    def softmax(self) -> Contestant:
        layer = nn.Linear(self.width, self.words).to(self.device, self.dtype)

        def loss() -> Tensor:
            return functional.cross_entropy(layer(self.hidden), self.targets, reduction="sum")

        return Contestant("softmax", layer, loss, self.hidden)

    def liger(self) -> Contestant:
        """Return a softmax that computes its logits for a part of the positions at a time (Liger-Kernel), in Triton."""
        from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

        layer, fused = nn.Linear(self.width, self.words), LigerFusedLinearCrossEntropyLoss(reduction="sum")
        layer.to(self.device, self.dtype)

        def loss() -> Tensor:
            return fused(layer.weight, self.hidden, self.targets, layer.bias)

        return Contestant("softmax, Liger", layer, loss, self.hidden)

    def cut(self, skips: bool) -> Contestant:
        """Return a softmax that never stores its logits (Wijmans et al. 2024), in Triton, without a bias.

        Args:
            skips: whether gradients below the precision of its numbers are left out.
        """
        from cut_cross_entropy import linear_cross_entropy

        layer = nn.Linear(self.width, self.words, bias=False).to(self.device, self.dtype)
        least = "high" if skips else None

        def loss() -> Tensor:
            return linear_cross_entropy(self.hidden, layer.weight, self.targets, reduction="sum", filter_eps=least)

        return Contestant(f"softmax, cut-cross-entropy{'' if skips else ', all gradients'}", layer, loss, self.hidden)

    def torch_adaptive(self, cutoffs: list[int], factor: float) -> Contestant:
        layer = nn.AdaptiveLogSoftmaxWithLoss(self.width, self.words, cutoffs, div_value=factor)
        layer.to(self.device, self.dtype)

        def loss() -> Tensor:
            return layer(self.hidden, self.targets).loss * self.positions

        return Contestant(f"torch adaptive {cutoffs} /{factor:g}", layer, loss, self.hidden)

    def fairseq_adaptive(self, cutoffs: list[int], factor: float) -> Contestant:
        from fairseq.modules.adaptive_softmax import AdaptiveSoftmax

        layer = AdaptiveSoftmax(self.words, self.width, list(cutoffs), dropout=0.0, factor=factor)
        layer.to(self.device, self.dtype)

        def loss() -> Tensor:
            # as fairseq's criterion adaptive_loss sums it
            logits, targets = layer(self.hidden.unsqueeze(0), self.targets.unsqueeze(0))
            pairs = zip(logits, targets, strict=True)
            losses = [functional.cross_entropy(x, y, reduction="sum") for x, y in pairs if y is not None]
            return torch.stack(losses).sum()

        return Contestant(f"fairseq adaptive {cutoffs} /{factor:g}", layer, loss, self.hidden)


def adaptives(setting: Setting) -> list[Contestant]:
    """Return the fastest, the fastest of full width, and fairseq's own cutoffs. Candidates are warmed up first."""

    def below(cutoffs: list[int]) -> list[int]:
        return [cutoff for cutoff in cutoffs if cutoff < setting.words]

    timed: list[tuple[float, list[int], float]] = []
    for cutoffs in filter(None, map(below, CUTOFFS)):
        for factor in FACTORS:
            candidate = setting.torch_adaptive(cutoffs, factor)
            candidate.seconds()
            timed.append((candidate.seconds(), cutoffs, factor))
    fastest, full = min(timed)[1:], min(entry for entry in timed if entry[2] == 1.0)[1:]
    chosen = [setting.torch_adaptive(*fastest), setting.torch_adaptive(*full)]
    if below(HOST_CUTOFFS):
        chosen.append(setting.torch_adaptive(below(HOST_CUTOFFS), HOST_FACTOR))
    try:
        chosen.append(setting.fairseq_adaptive(*fastest))
    except ImportError:
        print("(fairseq is not installed: torch's adaptive softmax alone)")
    return list({contestant.name: contestant for contestant in chosen}.values())


def fused(setting: Setting) -> list[Contestant]:
    """Return softmaxes of other packages that do not store logits, on a GPU, if they are installed."""
    made: list[Contestant] = []
    makers = [setting.liger]
    if setting.dtype != torch.float32:  # its kernels have short products only
        makers += [lambda: setting.cut(True), lambda: setting.cut(False)]
    for make in makers if setting.device.type == "cuda" else []:
        try:
            made.append(make())
        except ImportError as error:
            print(f"(left out: {error})")
    return made
