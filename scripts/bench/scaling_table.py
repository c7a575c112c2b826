#!/usr/bin/env python3
"""Print memory and time of output layers for a large vocabulary on many GPUs, computed and, for small cases, measured.

    python scripts/bench/scaling_table.py [--words 1000000] [--tokens 10000000000] [--signatures 25000 100000] [--check]

Sizes: V words, S signatures, F features, E entries of Φ (features of all signatures), H width, N positions of a step on
one GPU, G GPUs, T tokens of training. C is V for a softmax, S for the log-linear layer. Numbers are float32, 4 bytes.

    parameters      softmax V (H + 1), log-linear F (H + 1)
    their memory    16 bytes each: weight, gradient, Adam's two averages
    tables          32 bytes a word, log-linear only: class (twice), weight, share, members of classes
    activations     softmax 3 N V: log-probabilities, their gradients, and those of the logits
                    log-linear N S + 2 S H + 2 N H: probabilities instead of the scores; composed rows, rows of
                    targets, and the gradients of both
    operations      6 N H C: one matrix product forward, two backward, a multiplication and an addition each
                    log-linear also 2 N S, the gradient of Φ c, and 4 E H: composing rows from weights, and the
                    gradients of the weights
    all-reduce      2 (G - 1) / G bytes sent by every GPU for each byte of gradients, as in a ring
    time of a step  operations / RATE + all-reduce / BANDWIDTH, one after the other
    whole time      T / (N G) steps

The network below the output layer is not counted. RATE and BANDWIDTH are assumptions (--rate, --bandwidth), not
measurements. They omit reading and writing the activations, which takes longer for a softmax.

--check measures small cases on this CPU and prints them next to the computed values: numbers of parameters, operations
of the matrix products (torch's counter), elements of the largest tensor of a step, and bytes alive at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import timed_layers as bench
import torch
from alive_tensors import Alive
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

NUMBER = 4  # bytes
GPUS = (8, 32, 64, 256)


@dataclass(frozen=True)
class Layer:
    """An output layer with its sizes. The formulas are those of the module docstring."""

    name: str
    classes: int  # C
    rows: int  # of weights: V, or F
    width: int  # H
    buffers: int  # of N × C numbers that are alive at once
    composed: int = 0  # S, where rows are composed
    entries: int = 0  # E
    table_bytes: int = 0

    @property
    def parameters(self) -> int:
        return self.rows * (self.width + 1)

    @property
    def state_bytes(self) -> int:
        """Return the bytes of parameters, gradients, Adam's averages, and tables over the words."""
        return 4 * NUMBER * self.parameters + self.table_bytes

    def largest_tensor(self, positions: int) -> int:
        """Return the number of elements of the largest tensor."""
        return max(positions * self.classes, self.rows * self.width, self.composed * self.width)

    def activation_bytes(self, positions: int) -> int:
        around = 2 * (self.composed + positions) * self.width if self.composed else 0
        return NUMBER * (self.buffers * positions * self.classes + around)

    def products(self, positions: int) -> int:
        """Return the operations of the matrix products of a step."""
        return (6 * self.width + (2 if self.composed else 0)) * positions * self.classes

    def operations(self, positions: int) -> int:
        return self.products(positions) + 4 * self.entries * self.width

    def all_reduced_bytes(self, gpus: int) -> float:
        """Return the bytes that each GPU sends in a step."""
        return 2 * (gpus - 1) / gpus * NUMBER * self.parameters


def softmax(words: int, width: int) -> Layer:
    return Layer("softmax", words, words, width, buffers=3)


def log_linear(words: int, signatures: int, features: int, entries: int, width: int) -> Layer:
    return Layer(
        f"log-linear, S = {signatures:,}", signatures, features, width, buffers=1, composed=signatures, entries=entries,
        table_bytes=32 * words,
    )  # fmt: skip


# ---- the table ---------------------------------------------------------------------------------------------


def print_table(layers: list[Layer], args: argparse.Namespace) -> None:
    print(
        f"V = {args.words:,}, {args.tokens:.0e} tokens, H = {args.width:,}, N = {args.positions:,} on each GPU, "
        f"{args.rate / 1e12:g}e12 operations/s and {args.bandwidth / 1e9:g}e9 bytes/s assumed\n"
    )
    print("| | parameters | weights, gradients, Adam, tables | activations | GPUs | compute + all-reduce | whole |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for layer in layers:
        for gpus in GPUS:
            compute = layer.operations(args.positions) / args.rate
            send = layer.all_reduced_bytes(gpus) / args.bandwidth
            steps = args.tokens / (args.positions * gpus)
            print(
                f"| {layer.name} | {layer.parameters / 1e6:,.1f} M | {layer.state_bytes / 1e9:.2f} GB "
                f"| {layer.activation_bytes(args.positions) / 1e9:.2f} GB | {gpus} "
                f"| {compute * 1e3:,.1f} + {send * 1e3:,.1f} ms | {steps * (compute + send) / 3600:.2f} h |"
            )


# ---- what is measured --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """Measured values of a step, forward and backward, for the figures of a Layer."""

    parameters: int
    products: int
    largest_tensor: int
    activation_bytes: int  # and gradients of parameters, of which few are alive at the peak


def measure(module: nn.Module, loss: Callable[[], Tensor]) -> Measured:
    """Measure one step on the CPU."""
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)  # there before, as in every step but the first
    with FlopCounterMode(display=False) as counter:
        loss().backward()
    with Alive() as alive:
        loss().backward()
    parameters = sum(parameter.numel() for parameter in module.parameters())
    return Measured(parameters, counter.get_total_flops(), alive.largest, alive.peak)


def small_cases(words: int) -> list[tuple[Layer, Measured]]:
    """Return both layers of scripts/bench/timed_layers.py at that size, and their measured values."""
    setting = bench.Setting(words, torch.device("cpu"), torch.float32)
    plain, ours = setting.softmax(), setting.log_linear()
    rows: Any = ours.module.rows
    sizes = rows.num_rows, rows.num_features, len(rows.indices), bench.H
    layers = [softmax(words, bench.H), log_linear(words, *sizes)]
    return [
        (layer, measure(made.module, made.loss)) for layer, made in zip(layers, (plain, ours), strict=True)
    ]


def print_check(positions: int) -> None:
    print(f"\nby arithmetic / measured on this CPU, N = {positions:,}, H = {bench.H}, torch {torch.__version__}\n")
    print("| V | | parameters | operations of products | largest tensor | activations |")
    print("|---:|---|---:|---:|---:|---:|")
    for words in (10_000, bench.USUAL):
        for layer, found in small_cases(words):
            pairs = [
                (layer.parameters, found.parameters, 1e6, "M"), (layer.products(positions), found.products, 1e9, "G"),
                (layer.largest_tensor(positions), found.largest_tensor, 1e6, "M"),
                (layer.activation_bytes(positions), found.activation_bytes, 1e6, "MB"),
            ]  # fmt: skip
            cells = (f"{ours / unit:,.2f} / {theirs / unit:,.2f} {name}" for ours, theirs, unit, name in pairs)
            print(f"| {words:,} | {layer.name} | {' | '.join(cells)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=10**6)
    parser.add_argument("--tokens", type=float, default=1e10)
    parser.add_argument("--signatures", type=int, nargs="+", default=[25_000, 100_000], help="F is taken for as large")
    parser.add_argument("--per-signature", type=int, default=6, help="features of a signature (default: 6)")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--positions", type=int, default=8192, help="of a step on one GPU (default: 8192)")
    parser.add_argument("--rate", type=float, default=1e14, help="operations a second (default: 1e14)")
    parser.add_argument("--bandwidth", type=float, default=2.5e10, help="bytes a second (default: 2.5e10)")
    parser.add_argument("--check", action="store_true", help="measure small cases, too")
    args = parser.parse_args()
    layers = [softmax(args.words, args.width)]
    for number in args.signatures:
        layers.append(log_linear(args.words, number, number, number * args.per_signature, args.width))
    print_table(layers, args)
    if args.check:
        torch.set_num_threads(1)
        print_check(bench.N)
    return 0


if __name__ == "__main__":
    sys.exit(main())
