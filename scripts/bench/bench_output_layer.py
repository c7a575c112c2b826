#!/usr/bin/env python3
"""Measure the speed of the log-linear output layer, forward and backward, against softmax and adaptive softmax.

    python scripts/bench/bench_output_layer.py [--quick] [--threads 1] [--memory both]
    python scripts/bench/bench_output_layer.py --device cuda [--dtype bfloat16] [--words V …] [--positions N] \\
        [--width H]

The layers and their inputs are those of timed_layers.py. N positions, H hidden, V words, S signatures.

    log-linear   fairseq_llrnn's layer, log p of the targets; on a GPU also fused by torch.compile, and as one CUDA
                 graph, which starts all of its operations at once (also for the softmax)
    tree         the same layer over a tree of its signatures: the fastest of Huffman trees of three arities, clusters,
                 and two levels in random order: leaves spread evenly over 54, 256 and 512 nodes below the root, or
                 256, 512 and 725 of which as many as needed are filled, with as many leaves as there are nodes
    softmax      cross_entropy(linear(h, W, b)), sum; on a GPU also fused by torch.compile, and, if installed, the
                 layers of Liger-Kernel and of cut-cross-entropy, which do not store logits. The latter omits gradients
                 that are too small for its precision, for random weights nearly all of them; "all gradients": it does
                 not.
    adaptive     torch's AdaptiveLogSoftmaxWithLoss and, if installed, fairseq's AdaptiveSoftmax. "/4": each tail
                 cluster has a quarter of the dimensions of the one before. A search over cutoffs and factors selects
                 the fastest of all, and the fastest with H dimensions throughout ("/1"), like the other contestants.
                 The cutoffs of fairseq's lstm_lm are measured as well.

Contestants take turns, and figures are medians, on a CPU of processor time (measuring.py).

growth_time and growth_memory compare V = 10⁶ to V = 42,500 with the same signatures. Memory is measured in a child
process per size: the peak of the resident memory in a step, minus that before the step, which has the V-sized tables
(class and background weight of every word), parameters and inputs. On CUDA it is the same difference by torch's
allocator. The tables' "MB of a step" are the bytes of tensors alive at once, gradients of parameters among them: by
torch's allocator on CUDA, counted on a CPU (alive_tensors.py).

The last line is one JSON object: softmax_over_loglinear, adaptive_over_loglinear (fastest adaptive of all),
exact_over_tree, adaptive_over_tree, growth_time, growth_memory. fairseq is not needed.
"""

import argparse
import gc
import json
import math
import multiprocessing
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

import timed_layers as layers
from alive_tensors import Alive
from kept_memory import add_memory_option, memory_line, run_again
from measuring import Rounds, device_name, in_turns, parse, peak_memory, return_freed_blocks
from timed_layers import Contestant, InAGraph, Setting, adaptives, fused

HUGE = 1_000_000
LOGITS_LIMIT = {"cpu": 2 << 30, "cuda": 16 << 30}  # bytes; a softmax with larger logits is left out
BUDGET = 15.0  # seconds


# ---- measuring -------------------------------------------------------------------------------------------


def take_turns(contestants: Sequence[Contestant], rounds: int) -> Rounds:
    """Run at most so many rounds, at least three: as many as start within BUDGET."""
    found = in_turns({contestant.name: contestant.seconds for contestant in contestants}, 3, rounds, BUDGET)
    for contestant in contestants:
        contestant.drop_gradients()
    return found


def step_memory(contestant: Contestant) -> int:
    """Return the peak bytes of one step, minus those before it."""
    contestant.seconds()  # libraries load their kernels and take their scratch space at the first step
    contestant.drop_gradients()
    gc.collect()
    return peak_memory(contestant.seconds, contestant.hidden.device)


def allocated(contestant: Contestant) -> int:
    """Return the maximum bytes of tensors that a step adds: by torch's allocator, or counted on a CPU."""
    if contestant.hidden.device.type == "cuda":
        return step_memory(contestant)
    contestant.drop_gradients()
    with Alive() as alive:
        contestant.loss().backward()
    contestant.drop_gradients()
    return alive.peak


def memory_child(result: Connection, words: int, args: argparse.Namespace) -> None:
    return_freed_blocks()
    torch.set_num_threads(args.threads)
    result.send(step_memory(Setting.of(words, args, args.positions, args.width).log_linear()))


def memory_of_a_step(words: int, args: argparse.Namespace) -> int | None:
    """Return the peak bytes of a log-linear step; on a CPU in its own process, or None if the system has no such
    figure.
    """
    if args.device == "cuda":  # which cannot be used after a fork
        return step_memory(Setting.of(words, args, args.positions, args.width).log_linear())
    if not Path("/proc/self/clear_refs").exists():
        return None
    # A fork has all modules loaded already. It is taken before torch starts its threads in this process.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=memory_child, args=(sender, words, args))
    child.start()
    sender.close()
    try:
        return int(receiver.recv())
    except EOFError:
        raise SystemExit(f"the memory measurement at V = {words:,} failed; its error is above") from None
    finally:
        child.join()


# ---- report ----------------------------------------------------------------------------------------------


def failures(contestants: Sequence[Contestant]) -> dict[str, str]:
    """Return the errors of contestants whose first step fails, by name: compiled ones, and layers of other packages."""
    reasons = {}
    for contestant in contestants:
        try:
            contestant.seconds()
        except Exception as error:  # those of a compiler may be any
            reasons[contestant.name] = f"{type(error).__name__}: {error}".splitlines()[0]
        contestant.drop_gradients()
    return reasons


def compare(words: int, args: argparse.Namespace) -> dict[str, float]:
    """Print one size's table; return times of softmax (nan: left out, or failed) and the fastest adaptive over ours."""
    setting = Setting.of(words, args, args.positions, args.width)
    ours = setting.log_linear()
    contestants = [ours, *setting.trees(), *adaptives(setting), *fused(setting)]
    limit = LOGITS_LIMIT[args.device]
    with_softmax = args.positions * words * torch.finfo(setting.dtype).bits // 8 <= limit
    contestants += [setting.softmax()] if with_softmax else []
    if args.device == "cuda":
        also = (ours, contestants[-1]) if with_softmax else (ours,)
        torch._dynamo.reset()  # a size's graphs count as recompilations of the size before, which have a limit
        contestants += [made for contestant in also for made in (contestant.compiled(), contestant.in_a_graph())]
    failed = failures(contestants[1:])
    contestants = [contestant for contestant in contestants if contestant.name not in failed]
    rounds = take_turns(contestants, 5 if args.quick else 11)
    seconds = {contestant.name: rounds.median(contestant.name) for contestant in contestants}
    peaks = {rival.name: math.nan if isinstance(rival, InAGraph) else allocated(rival) for rival in contestants}
    print(f"\nV = {words:,}{'':34}{'ms':>10}{'times ours':>12}{'parameters':>14}{'MB of a step':>14}")
    for contestant in contestants:
        took, peak = seconds[contestant.name], peaks[contestant.name]
        size = sum(parameter.numel() for parameter in contestant.module.parameters())
        line = f"  {contestant.name:<54}{took * 1e3:>8.1f}{took / seconds[ours.name]:>12.2f}{size:>14,}"
        print(f"{line}{peak / 1e6:>14,.1f}")
    for name, reason in failed.items():
        print(f"  {name:<54}{'failed':>8}  {reason[:60]}")
    if not with_softmax:
        print(f"  softmax left out: its logits would take more than {limit >> 30} GiB")
    adaptive, tree = (min((n for n in seconds if kind in n), key=seconds.__getitem__) for kind in ("adaptive", "tree"))
    return {
        "softmax_over_loglinear": rounds.ratio("softmax", ours.name) if "softmax" in seconds else float("nan"),
        "adaptive_over_loglinear": rounds.ratio(adaptive, ours.name),
        "exact_over_tree": rounds.ratio(ours.name, tree),
        "adaptive_over_tree": rounds.ratio(adaptive, tree),
    }


def growth_of_time(args: argparse.Namespace) -> float:
    small, large = (Setting.of(words, args, args.positions, args.width).log_linear() for words in (layers.USUAL, HUGE))
    small.name, large.name = "small", "large"
    rounds = take_turns([small, large], 31 if args.quick else 61)
    print(f"\nlog-linear, a step: {rounds.median('small') * 1e3:.1f} ms at V = {layers.USUAL:,}, ", end="")
    print(f"{rounds.median('large') * 1e3:.1f} ms at V = {HUGE:,}")
    return rounds.ratio("large", "small")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds; under 50 seconds")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--words", type=int, nargs="+", help="V (default: 10,000, 42,500 and 200,000)")
    parser.add_argument("--positions", type=int, default=layers.N, help="N (default: %(default)s)")
    parser.add_argument("--width", type=int, default=layers.H, help="H (default: %(default)s)")
    add_memory_option(parser)
    args = parse(parser)
    run_again(args.memory)
    small, large = (memory_of_a_step(words, args) for words in (layers.USUAL, HUGE))
    sizes = f"N = {args.positions:,}, H = {args.width:,}, M = {layers.M:,}"
    print(f"{sizes}, {args.dtype} on {device_name(args)}, torch {torch.__version__}; {memory_line()}")
    usual = (layers.USUAL,) if args.quick else (10_000, layers.USUAL, 200_000)
    all_sizes = tuple(args.words) if args.words else usual
    ratios = {words: compare(words, args) for words in all_sizes}
    growth = growth_of_time(args)
    if small and large:
        print(f"log-linear, peak memory of a step: {small / 2**20:.1f} MiB at V = {layers.USUAL:,}, ", end="")
        print(f"{large / 2**20:.1f} MiB at V = {HUGE:,} (tables and parameters not counted)")
    figures = {
        **{name: round(ratio, 2) for name, ratio in ratios.get(layers.USUAL, ratios[all_sizes[0]]).items()},
        "growth_time": round(growth, 3),
        "growth_memory": round(large / small, 3) if small and large else None,
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
