#!/usr/bin/env python3
"""Measure the speed of an output tree over a large vocabulary in which every word is a signature, against adaptive
softmax.

    python scripts/bench/bench_large_tree.py [--quick] [--task one_word] [--threads 1] [--memory both] \\
        [--picture growth.png]

Sizes, hidden states and targets are those of timed_layers.py: N positions, H hidden, a Zipf unigram over V words, which
is also the background. Adaptive softmaxes are torch's, with the fastest cut-offs for each task and V ("/4": each
cluster has a quarter of the dimensions of the one before; "/1": the faster of two with all H dimensions throughout,
like the tree). Trees are Huffman trees, of the fastest arity for the task.

    training       forward and backward; by default every gradient is dense for both: the tree's is a tensor of V × H,
                   of which few rows are not 0. "sparse": with TreeLayer.sparse_gradients, which torch's SGD,
                   Adagrad and SparseAdam accept. torch's adaptive softmax has no such gradients.
    scoring        log p of N targets without a gradient
    one word       log p of one target at a time without a gradient, mean over targets

Contestants take turns, and figures are medians, on a CPU of processor time (measuring.py). The table of growth has
training and scoring from V = 10⁴ to 10⁶, and the exact layer if its scores take less than 1 GB. The last line is one
JSON object of the ratios at V = 250,000: time of the fastest adaptive softmax over that of the tree.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

import timed_layers as sizes
from kept_memory import add_memory_option, memory_line, run_again
from measuring import Rounds, device_name, in_turns, parse, timed
from zipf_law import zipf

from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.normalisers import ExactRows, LogLinearOutput
from llrnn_research.output_trees.builders import huffman_tree
from llrnn_research.output_trees.tree_layer import TreeLayer
from llrnn_research.output_trees.tree_log_linear import TreeOutput

WORDS = 250_000
GROWTH = (10_000, 30_000, 100_000, 300_000, 1_000_000)
ARITIES = (8, 16, 32, 64)
CUTOFFS = (
    [500, 2500],
    [200, 1000, 8000],
    [500, 4000, 40_000],
    [100, 1000, 10_000, 50_000],
    [500, 2000, 10_000, 50_000],
    [1000, 5000, 25_000, 100_000],
    [1000, 4000, 16_000, 64_000, 256_000],
)
FACTOR = 4.0  # of the dimensions of a cluster and the next one: torch's default
EXACT_LIMIT = 1 << 30  # bytes of the scores of the exact layer
FULL_LIMIT = 1_000_000  # words; an adaptive softmax of full width would take most of the memory
ONE_BY_ONE = 200  # targets
TASKS = ("training", "scoring", "one_word")


@dataclass
class Rival:
    """A layer, with its seconds of training, scoring and scoring one word."""

    name: str
    module: nn.Module
    log_probs: Callable[[Tensor, Tensor], Tensor]  # hidden states, targets -> log p, for training
    scored: Callable[[Tensor, Tensor], Tensor]  # the same without a gradient

    def training(self, setting: sizes.Setting) -> float:
        setting.hidden.grad = None
        self.module.zero_grad(set_to_none=True)
        took = timed(lambda: (-self.log_probs(setting.hidden, setting.targets).sum()).backward(), setting.device)
        self.module.zero_grad(set_to_none=True)
        return took

    @torch.no_grad()
    def scoring(self, setting: sizes.Setting) -> float:
        hidden = setting.hidden.detach()
        return timed(lambda: self.scored(hidden, setting.targets), hidden.device)

    @torch.no_grad()
    def one_word(self, setting: sizes.Setting) -> float:
        pairs = [(setting.hidden[i : i + 1].detach(), setting.targets[i : i + 1]) for i in range(ONE_BY_ONE)]
        return timed(lambda: [self.scored(*pair) for pair in pairs], setting.device) / len(pairs)


class Large:
    """All rivals of one V."""

    def __init__(self, words: int, args: argparse.Namespace) -> None:
        self.setting = sizes.Setting.of(words, args)
        self.words, self.class_weights = words, zipf(words)
        device = self.setting.device
        names = tuple(f"W:{i}" for i in range(words))
        table = FeatureTable(names, np.arange(words + 1), np.arange(words), np.ones(words, dtype=np.float32))
        self.layer = LogLinearOutput(table, torch.arange(words), self.setting.hidden.size(1)).to(device)
        self.log_mass = torch.from_numpy(np.log(self.class_weights)).float().to(device).unsqueeze(0)

    def exact(self) -> Rival:
        def log_probs(hidden: Tensor, targets: Tensor) -> Tensor:
            return ExactRows(self.layer).log_prob(hidden, targets, self.log_mass, None)

        def scored(hidden: Tensor, targets: Tensor) -> Tensor:
            rows = self.layer.weight, self.layer.bias
            return ExactRows(self.layer, rows).log_prob(hidden, targets, self.log_mass, None)

        return Rival("exact", self.layer, log_probs, scored)

    def trees(self, sparse: bool) -> list[Callable[[], Rival]]:
        """Return trees by arity, with dense or sparse gradients."""
        return [lambda arity=arity: self._tree(arity, sparse) for arity in ARITIES]  # type: ignore[misc]

    def _tree(self, arity: int, sparse: bool) -> Rival:
        name = f"tree, arity {arity}{', sparse' if sparse else ''}"
        tree = huffman_tree(self.class_weights, arity)
        nodes = TreeLayer(tree, self.setting.hidden.size(1), self.log_mass[0].cpu()).to(self.setting.device)
        nodes.sparse_gradients = sparse
        with torch.no_grad():
            kept = TreeOutput(self.layer, nodes, (self.layer.weight, self.layer.bias))  # one-hot: rows are weights

        def log_probs(hidden: Tensor, targets: Tensor) -> Tensor:
            return TreeOutput(self.layer, nodes).class_log_prob(hidden, targets, self.log_mass)

        def scored(hidden: Tensor, targets: Tensor) -> Tensor:
            return kept.class_log_prob(hidden, targets, self.log_mass)

        return Rival(name, nn.ModuleList([self.layer, nodes]), log_probs, scored)

    def adaptive(self, cutoffs: list[int], factor: float) -> Rival:
        layer = self.setting.torch_adaptive(cutoffs, factor).module

        def log_probs(hidden: Tensor, targets: Tensor) -> Tensor:
            return layer(hidden, targets).output

        return Rival(f"adaptive {cutoffs} /{factor:g}", layer, log_probs, log_probs)

    def adaptives(self, full: bool) -> list[Callable[[], Rival]]:
        cutoffs = [x for x in CUTOFFS if x[-1] < self.words][-2 if full else -5 :]
        return [lambda x=x: self.adaptive(x, 1.0 if full else FACTOR) for x in cutoffs]  # type: ignore[misc]


def fastest(rivals: list[Callable[[], Rival]], task: str, setting: sizes.Setting) -> Rival:
    """Return the fastest of the rivals: the better of two runs, after a warm-up. Only one of them is in memory."""
    times = []
    for make in rivals:
        run = getattr(make(), task)
        run(setting)
        times.append(min(run(setting), run(setting)))
    return rivals[int(np.argmin(times))]()


def race(large: Large, task: str, rounds: int, exact: bool, quick: bool = False) -> Rounds:
    """Print and return rounds of tree, sparse (in training), adaptive, full, exact.

    Args:
        quick: use two arities and two adaptive softmaxes, none of them of full width.
    """
    setting, some = large.setting, slice(1, 3) if quick else slice(None)
    rivals = {"tree": fastest(large.trees(sparse=False)[some], task, setting)}
    if task == "training":
        rivals["sparse"] = fastest(large.trees(sparse=True)[some], task, setting)
    rivals["adaptive"] = fastest(large.adaptives(full=False)[-2:] if quick else large.adaptives(False), task, setting)
    if large.words < FULL_LIMIT and not quick:
        rivals["full"] = fastest(large.adaptives(full=True), task, setting)
    if exact:
        rivals["exact"] = large.exact()
    found = in_turns({name: partial(getattr(rival, task), setting) for name, rival in rivals.items()}, rounds, rounds)
    unit, factor = ("µs", 1e6) if task == "one_word" else ("ms", 1e3)
    for name, rival in rivals.items():
        line = f"  {large.words:>9,}  {task:<9} {rival.name:<48}{found.median(name) * factor:>10.1f} {unit}"
        print(f"{line}{found.ratio(name, 'tree'):>9.2f} × the tree", flush=True)
    return found


def picture(curves: dict[str, dict[int, dict[str, float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharex=True)
    labels = {
        "exact": "exact",
        "full": "adaptive, all H dimensions",
        "adaptive": "adaptive, tuned",
        "tree": "tree",
        "sparse": "tree, sparse gradients",
    }
    for axis, (task, curve) in zip(axes, curves.items(), strict=True):
        for name, label in labels.items():
            points = [(words, found[name] * 1e3) for words, found in curve.items() if name in found]
            if points:
                axis.plot(*zip(*points, strict=True), marker="o", label=label)
        axis.set(xscale="log", yscale="log", xlabel="words", title=task)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("ms for 2,048 positions")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer contestants and rounds, and no growth")
    parser.add_argument("--task", choices=TASKS, help="this one alone, and no growth")
    parser.add_argument("--picture", type=Path, help="of the growth")
    add_memory_option(parser)
    args = parse(parser)
    run_again(args.memory)
    args.dtype = "float32"
    print(f"N = {sizes.N}, H = {sizes.H}, {device_name(args)}, torch {torch.__version__}; {memory_line()}")
    figures: dict[str, float] = {}
    large = Large(WORDS, args)
    for task in TASKS if args.task is None else (args.task,):
        found = race(large, task, 3 if args.quick else 7, exact=False, quick=args.quick)
        figures[f"large_{task}"] = found.ratio("adaptive", "tree")
        if "full" in found.seconds:
            figures[f"large_{task}_full"] = found.ratio("full", "tree")
        if "sparse" in found.seconds:
            figures[f"large_{task}_sparse"] = found.ratio("adaptive", "sparse")
    curves: dict[str, dict[int, dict[str, float]]] = {"training": {}, "scoring": {}}
    for words in () if args.quick or args.task else GROWTH:
        large = Large(words, args)
        for task, curve in curves.items():
            rounds = race(large, task, 3, exact=sizes.N * words * 4 < EXACT_LIMIT)
            curve[words] = {name: rounds.median(name) for name in rounds.seconds}
    if args.picture:
        picture(curves, args.picture)
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
