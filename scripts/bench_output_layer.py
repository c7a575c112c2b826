#!/usr/bin/env python3
"""How fast is the log-linear output layer? Forward and backward, against softmax and adaptive softmax.

    python scripts/bench_output_layer.py [--quick] [--device cuda] [--dtype bfloat16] [--threads 2] [--memory both]

Sizes: N positions, H hidden, V words, M words with an identity of their own, S signatures, F features.

All contestants get the same hidden states (N, H) and the same targets, drawn from a Zipf unigram over V words
that are numbered from the most frequent on. The prior is synthetic and of the shape of French UD: M identity
signatures, 400 morphological ones over 60 features with Zipf-distributed sizes, the unigram as background.

    log-linear   fairseq_llrnn's layer, log p of the targets
    tree         the same layer over a tree of its signatures: Huffman trees of three arities and clusters, of which the
                 fastest is shown, and the clusters
    softmax      cross_entropy(linear(h, W, b)), sum
    adaptive     torch's AdaptiveLogSoftmaxWithLoss and, where installed, fairseq's AdaptiveSoftmax. "/4"
                 says that each tail cluster has a quarter of the dimensions of the one before. A search over
                 CUTOFFS and FACTORS picks the fastest of all, and the fastest with H dimensions throughout
                 ("/1"), as the other contestants have. The cutoffs of fairseq's lstm_lm are shown as well.

Contestants take turns in each round, so that what else the machine does hits all alike; figures are medians.

growth_time and growth_memory compare V = 10⁶ to V = 42,500 with the same signatures. Memory is measured in a
child process per size: by how much the resident memory peaks in a step above what it was before the step,
when the V-sized tables (class and background weight of every word), parameters and inputs were there. On CUDA
it is the same difference by torch's allocator. The tables' "MB of a step" are the bytes of tensors alive at once,
gradients of parameters among them: by torch's allocator on CUDA, counted on a CPU (alive_tensors.py).

The last line is one JSON object: softmax_over_loglinear, adaptive_over_loglinear (fastest adaptive of all),
exact_over_tree, adaptive_over_tree, growth_time, growth_memory. All this runs where fairseq is absent.
"""

import argparse
import ctypes
import gc
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also where the package is not installed

from alive_tensors import Alive
from devices import add_device_option, check_device, device_name
from kept_memory import add_memory_option, run_again, told

from fairseq_llrnn.backgrounds.static import StaticBackground
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.output.tree_layer import TreeLayer
from fairseq_llrnn.output.tree_log_linear import TreeOutput
from fairseq_llrnn.trees.clusters import cluster_tree
from fairseq_llrnn.trees.huffman import huffman_tree
from fairseq_llrnn.trees.tree import Tree

N, H, M = 2048, 256, 2500
USUAL, HUGE = 42_500, 1_000_000
SPECIALS, MORPHOLOGICAL, FEATURES = 4, 400, 60
LOGITS_LIMIT = 2 << 30  # bytes; a softmax with larger logits is left out
CUTOFFS = ([200, 2000], [200, 1000, 8000], [500, 2000, 10_000], [500, 5000], [2000, 10_000], [4000, 20_000])
ARITIES = (8, 16, 32)  # of Huffman trees
BUDGET = 15.0  # seconds
FACTORS = (4.0, 2.0, 1.0)
HOST_CUTOFFS, HOST_FACTOR = [10_000, 50_000, 200_000], 4.0  # fairseq's lstm_lm


@dataclass
class Contestant:
    """Something that computes the loss of all targets, summed, from `hidden`."""

    name: str
    module: nn.Module
    loss: Callable[[], Tensor]
    hidden: Tensor

    def seconds(self) -> float:
        """Time of one forward and backward; those of the step before are dropped unmeasured."""
        self.drop_gradients()
        synchronise(self.hidden.device)
        begin = time.perf_counter()
        self.loss().backward()
        synchronise(self.hidden.device)
        return time.perf_counter() - begin

    def drop_gradients(self) -> None:
        self.hidden.grad = None
        self.module.zero_grad(set_to_none=True)


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# ---- the synthetic prior ---------------------------------------------------------------------------------


def zipf(n: int) -> np.ndarray:
    weights = 1.0 / np.arange(1, n + 1)
    return weights / weights.sum()


def signature_table(rng: np.random.Generator) -> FeatureTable:
    """Rows of the specials, of M words with identity, and of the morphological classes: S rows."""
    combinations: set[tuple[int, ...]] = set()
    while len(combinations) < MORPHOLOGICAL:
        combinations.add(tuple(sorted(rng.choice(FEATURES, rng.integers(2, 8), replace=False).tolist())))
    classes = [{f"Morph:{f}": 1.0 for f in combination} for combination in sorted(combinations)]
    rows = [{f"SPECIAL:{i}": 1.0} for i in range(SPECIALS)]
    rows += [{f"TOPFORM:{i}": 1.0} | classes[rng.integers(MORPHOLOGICAL)] for i in range(M)]
    rows += [{"NOTTOP": 1.0} | row for row in classes]
    return FeatureTable.from_rows(rows)


def classes_of_words(words: int, rng: np.random.Generator) -> np.ndarray:
    """(V,) signatures: frequent words have their own, the others share the morphological classes."""
    own = SPECIALS + M
    one_each = np.arange(MORPHOLOGICAL)
    others = rng.choice(MORPHOLOGICAL, words - own - MORPHOLOGICAL, p=zipf(MORPHOLOGICAL))
    return np.concatenate([np.arange(own), own + one_each, own + others])


# ---- contestants -----------------------------------------------------------------------------------------


@dataclass
class Setting:
    """What all contestants of one size share."""

    words: int
    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, words: int, args: argparse.Namespace) -> "Setting":
        return cls(words, torch.device(args.device), getattr(torch, args.dtype))

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(1)
        torch.manual_seed(1)
        self.targets = torch.from_numpy(self.rng.choice(self.words, N, p=zipf(self.words))).to(self.device)
        self.hidden = torch.randn(N, H, device=self.device).to(self.dtype).requires_grad_()

    def log_linear(self) -> Contestant:
        table = signature_table(self.rng)
        class_of = torch.from_numpy(classes_of_words(self.words, self.rng))
        log_unigram = torch.from_numpy(np.log(zipf(self.words)))
        background = StaticBackground(class_of, table.num_rows, log_unigram).float().to(self.device)
        layer = LogLinearOutput(table, class_of, H).to(self.device, self.dtype)
        state = background.start(N)

        def loss() -> Tensor:
            mass, share = background.log_mass(state), background.log_share(state, self.targets)
            return -layer.target_log_prob(self.hidden, self.targets, mass, share).sum()

        self.prior = layer, background
        return Contestant(f"log-linear (S = {table.num_rows:,})", layer, loss, self.hidden)

    def tree(self, name: str, tree: Tree, rows: str = "free") -> Contestant:
        """Over the signatures of `log_linear`, with its parameters."""
        layer, background = self.prior
        state = background.start(N)
        nodes = TreeLayer(tree, H, background.log_mass(state)[0].cpu(), rows).to(self.device, self.dtype)

        def loss() -> Tensor:
            mass, share = background.log_mass(state), background.log_share(state, self.targets)
            return -TreeOutput(layer, nodes).target_log_prob(self.hidden, self.targets, mass, share).sum()

        name = f"tree: {name}, {tree.internal:,} nodes, {tree.levels} levels"
        return Contestant(name, nn.ModuleList([layer, nodes]), loss, self.hidden)

    def trees(self) -> list[Contestant]:
        """The fastest Huffman tree, and two levels of clusters."""
        _, background = self.prior
        masses = background.log_mass(background.start(1))[0].double().exp().cpu().numpy()
        timed: list[tuple[float, int, Contestant]] = []
        for arity in ARITIES:
            candidate = self.tree(f"Huffman, arity {arity}", huffman_tree(masses, arity))
            candidate.seconds()
            timed.append((candidate.seconds(), arity, candidate))
        clusters = cluster_tree(masses)
        composed = self.tree("clusters, rows composed", clusters, "composed")
        return [min(timed)[2], self.tree("clusters", clusters), composed]

    def softmax(self) -> Contestant:
        layer = nn.Linear(H, self.words).to(self.device, self.dtype)

        def loss() -> Tensor:
            return functional.cross_entropy(layer(self.hidden), self.targets, reduction="sum")

        return Contestant("softmax", layer, loss, self.hidden)

    def torch_adaptive(self, cutoffs: list[int], factor: float) -> Contestant:
        layer = nn.AdaptiveLogSoftmaxWithLoss(H, self.words, cutoffs, div_value=factor)
        layer.to(self.device, self.dtype)

        def loss() -> Tensor:
            return layer(self.hidden, self.targets).loss * N

        return Contestant(f"torch adaptive {cutoffs} /{factor:g}", layer, loss, self.hidden)

    def fairseq_adaptive(self, cutoffs: list[int], factor: float) -> Contestant:
        from fairseq.modules.adaptive_softmax import AdaptiveSoftmax

        layer = AdaptiveSoftmax(self.words, H, list(cutoffs), dropout=0.0, factor=factor)
        layer.to(self.device, self.dtype)

        def loss() -> Tensor:
            # as fairseq's criterion adaptive_loss sums it
            logits, targets = layer(self.hidden.unsqueeze(0), self.targets.unsqueeze(0))
            pairs = zip(logits, targets, strict=True)
            losses = [functional.cross_entropy(x, y, reduction="sum") for x, y in pairs if y is not None]
            return torch.stack(losses).sum()

        return Contestant(f"fairseq adaptive {cutoffs} /{factor:g}", layer, loss, self.hidden)


def adaptives(setting: Setting) -> list[Contestant]:
    """The fastest, the fastest of full width, and fairseq's own cutoffs; candidates are warm when timed."""

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


# ---- measuring -------------------------------------------------------------------------------------------


def take_turns(contestants: Sequence[Contestant], rounds: int) -> dict[str, float]:
    """Median seconds by name. Where the machine is busy, fewer rounds: three, or as many as start in BUDGET."""
    begin = time.perf_counter()
    for contestant in contestants:
        contestant.seconds()  # warm up
    times: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for done in range(rounds):
        if done >= 3 and time.perf_counter() - begin > BUDGET:
            break
        for contestant in contestants:
            times[contestant.name].append(contestant.seconds())
    for contestant in contestants:
        contestant.drop_gradients()
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def resident(field: str) -> int:
    """Bytes of VmRSS (now) or VmHWM (the peak since it was reset) of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def step_memory(contestant: Contestant) -> int:
    """Peak bytes of one step above what was there before it."""
    device = contestant.hidden.device
    contestant.seconds()  # libraries load their kernels and take their scratch space at the first step
    contestant.drop_gradients()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        contestant.seconds()
        return torch.cuda.max_memory_allocated(device) - before
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
    before = resident("VmRSS")
    contestant.seconds()
    return resident("VmHWM") - before


def allocated(contestant: Contestant) -> int:
    """The most bytes of tensors alive in a step beyond those before it: by torch's allocator, or counted on a CPU."""
    if contestant.hidden.device.type == "cuda":
        return step_memory(contestant)
    contestant.drop_gradients()
    with Alive() as alive:
        contestant.loss().backward()
    contestant.drop_gradients()
    return alive.peak


def memory_child(result: Connection, words: int, args: argparse.Namespace) -> None:
    # Without this glibc keeps freed blocks for later and the resident memory no longer tells what is in use.
    ctypes.CDLL(None).mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD
    torch.set_num_threads(args.threads)
    result.send(step_memory(Setting.of(words, args).log_linear()))


def memory_of_a_step(words: int, args: argparse.Namespace) -> int | None:
    """Peak bytes of a log-linear step, in a process of its own; None where the system does not tell."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    # A fork has all modules loaded already. It is taken before torch starts its threads in this process.
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=memory_child, args=(there, words, args))
    child.start()
    there.close()
    try:
        return int(here.recv())
    except EOFError:
        raise SystemExit(f"the memory measurement at V = {words:,} failed; its error is above") from None
    finally:
        child.join()


# ---- report ----------------------------------------------------------------------------------------------


def compare(words: int, args: argparse.Namespace) -> dict[str, float]:
    """Print one size's table; times of softmax (nan: left out) and the fastest adaptive over ours."""
    setting = Setting.of(words, args)
    ours = setting.log_linear()
    contestants = [ours, *setting.trees(), *adaptives(setting)]
    with_softmax = N * words * torch.finfo(setting.dtype).bits // 8 <= LOGITS_LIMIT
    contestants += [setting.softmax()] if with_softmax else []
    seconds = take_turns(contestants, 5 if args.quick else 11)
    peaks = {contestant.name: allocated(contestant) for contestant in contestants}
    print(f"\nV = {words:,}{'':34}{'ms':>10}{'times ours':>12}{'parameters':>14}{'MB of a step':>14}")
    for contestant in contestants:
        took, peak = seconds[contestant.name], peaks[contestant.name]
        size = sum(parameter.numel() for parameter in contestant.module.parameters())
        line = f"  {contestant.name:<54}{took * 1e3:>8.1f}{took / seconds[ours.name]:>12.2f}{size:>14,}"
        print(f"{line}{peak / 1e6:>14,.1f}")
    if not with_softmax:
        print(f"  softmax left out: its logits would take more than {LOGITS_LIMIT >> 30} GiB")
    adaptive = min(took for name, took in seconds.items() if "adaptive" in name)
    tree = min(took for name, took in seconds.items() if "tree" in name)
    return {
        "softmax_over_loglinear": seconds.get("softmax", float("nan")) / seconds[ours.name],
        "adaptive_over_loglinear": adaptive / seconds[ours.name],
        "exact_over_tree": seconds[ours.name] / tree,
        "adaptive_over_tree": adaptive / tree,
    }


def growth_of_time(args: argparse.Namespace) -> float:
    small, large = (Setting.of(words, args).log_linear() for words in (USUAL, HUGE))
    small.name, large.name = "small", "large"
    seconds = take_turns([small, large], 31 if args.quick else 61)
    print(f"\nlog-linear, a step: {seconds['small'] * 1e3:.1f} ms at V = {USUAL:,}, ", end="")
    print(f"{seconds['large'] * 1e3:.1f} ms at V = {HUGE:,}")
    return seconds["large"] / seconds["small"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds; under 50 seconds")
    add_device_option(parser)
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--threads", type=int, default=2, help="of torch on the CPU (default: 2)")
    add_memory_option(parser)
    args = parser.parse_args()
    check_device(parser, args)
    status = run_again(args.memory)
    if status is not None:
        return status
    small, large = (memory_of_a_step(words, args) for words in (USUAL, HUGE))
    torch.set_num_threads(args.threads)
    print(f"N = {N}, H = {H}, M = {M}, {args.dtype} on {device_name(args)}, torch {torch.__version__}; {told()}")
    ratios = {words: compare(words, args) for words in ((USUAL,) if args.quick else (10_000, USUAL, 200_000))}
    growth = growth_of_time(args)
    if small and large:
        print(f"log-linear, peak memory of a step: {small / 2**20:.1f} MiB at V = {USUAL:,}, ", end="")
        print(f"{large / 2**20:.1f} MiB at V = {HUGE:,} (tables and parameters not counted)")
    figures = {
        **{name: round(ratio, 2) for name, ratio in ratios[USUAL].items()},
        "growth_time": round(growth, 3),
        "growth_memory": round(large / small, 3) if small and large else None,
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
