#!/usr/bin/env python3
"""Measure a forward and backward pass of the loss, eager and compiled: peak memory, and time in turns.

    python scripts/bench/bench_loss.py [--positions 8192] [--classes 8000] [--width 256] [--device cuda] [--short]

States, rows and targets are random, and each class is a word. --short computes in bfloat16 under autocast. Memory is
the largest of a step, minus that before it (measuring.py). The last line is one JSON object: megabytes and seconds.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from measuring import in_turns, parse, peak_memory, return_freed_blocks, timed

from fairseq_llrnn.functional import log_linear_nll


def main() -> int:
    parser = argparse.ArgumentParser(description="memory and time of the loss, eager and compiled")
    parser.add_argument("--positions", type=int, default=8192, help="(default: %(default)s)")
    parser.add_argument("--classes", type=int, default=8000, help="(default: %(default)s)")
    parser.add_argument("--width", type=int, default=256, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--short", action="store_true", help="bfloat16 under autocast")
    args = parse(parser)
    torch.manual_seed(1)
    sizes = (args.positions, args.width), (args.classes, args.width)
    hidden, rows = (torch.randn(size, device=args.device).requires_grad_() for size in sizes)
    targets = torch.randint(args.classes, (args.positions,), device=args.device)
    bias = torch.zeros(args.classes, device=args.device, requires_grad=True)
    log_mass, is_counted = hidden.new_zeros(args.classes), torch.ones_like(targets, dtype=torch.bool)

    def loss(hidden: Tensor, rows: Tensor, bias: Tensor) -> Tensor:
        return log_linear_nll(hidden, targets, rows, log_mass, bias=bias, is_counted=is_counted).mean()

    def step(loss: Callable[..., Tensor]) -> None:
        with torch.autocast(args.device, torch.bfloat16, enabled=args.short):
            value = loss(hidden, rows, bias)
        torch.autograd.grad(value, [hidden, rows, bias])

    steps = {"eager": partial(step, loss), "compiled": partial(step, torch.compile(loss, fullgraph=True))}
    return_freed_blocks()
    rounds = in_turns({name: partial(timed, run, args.device) for name, run in steps.items()}, args.rounds, args.rounds)
    figures = {}
    for name, run in steps.items():
        figures[f"{name}_mb"], figures[f"{name}_s"] = peak_memory(run, args.device) / 1e6, rounds.median(name)
        print(f"{name:<10}{figures[f'{name}_mb']:>8,.0f} MB{figures[f'{name}_s']:>10.3f} s")
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
