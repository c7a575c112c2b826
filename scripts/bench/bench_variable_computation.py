#!/usr/bin/env python3
"""Measure whether computing fewer dimensions saves time: variable cells against ordinary ones of the same width, by m.

    python scripts/bench/bench_variable_computation.py [--quick] [--width 1024]

One layer, inputs as wide as the state, random numbers, without other layers. The variable cell computes the fraction m
of its dimensions at every step, with λ = 1. m varies between rows and steps only in the lines marked so. All run in
turns in one thread. Figures are medians of processor time (measuring.py): microseconds per token and, in brackets, the
speed relative to the GRU.

    search, one    one step at a time, one hypothesis
    search, five   one step at a time, five hypotheses
    score, one     a sentence of 100 tokens
    score, 32      32 sentences of 100 tokens
    training       forward and backward of 32 sentences of 100 tokens

The last line is one JSON object: for the widest cells, the speed of the VCGRU relative to the GRU of the same width,
with m = 0.4 in `search_one`, `search_five`, `score_one`, `score_32` and `training`, and with varying m in
`score_32_varying`.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from measuring import in_turns, timed

from fairseq_llrnn.networks.recurrent import find_cell
from llrnn_research.variable_computation.variable_cells import VariableCell

WIDTHS, QUICK_WIDTH = (256, 512, 1024), 512
SHARES, SHARE = (1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1), 0.4
SPREAD = 1.0  # of the log-odds of a varying m
QUICK, FULL = 2.0, 30.0  # seconds of one table, beside a warm-up and three turns
MOST = 10_000  # turns
SENTENCES, TOKENS, STEPS = 32, 100, 20
KEY = f"vcgru, m = {SHARE:g}"  # which the last line is about
Run = Callable[[], object]


@dataclass(frozen=True)
class Setting:
    """The use of a layer. batch: sentences or hypotheses. stepwise: a call for each token."""

    name: str
    batch: int
    tokens: int
    stepwise: bool = False
    training: bool = False

    def use(self, layer: nn.Module, width: int) -> Run:
        x = torch.randn(self.batch, self.tokens, width)
        if self.training:
            return lambda: layer(x)[0].square().mean().backward()
        return lambda: self._read(layer, x)

    @torch.inference_mode()
    def _read(self, layer: nn.Module, x: Tensor) -> None:
        state = None
        for part in x.split(1, 1) if self.stepwise else (x,):
            _, state = layer(part, state)


SETTINGS = (
    Setting("search, one", 1, STEPS, stepwise=True),
    Setting("search, five", 5, STEPS, stepwise=True),
    Setting("score, one", 1, TOKENS),
    Setting("score, 32", SENTENCES, TOKENS),
    Setting("training", SENTENCES, TOKENS, training=True),
)


def variable(cell: str, width: int, share: float, varying: bool = False) -> VariableCell:
    """Return a layer that computes this fraction of its dimensions at every step, fixed or (`varying`) different per
    token.
    """
    layer = find_cell(cell).build(width, width)
    assert isinstance(layer, VariableCell)
    nn.init.zeros_(layer.from_state)
    nn.init.normal_(layer.from_input, std=SPREAD / math.sqrt(width)) if varying else nn.init.zeros_(layer.from_input)
    nn.init.constant_(layer.from_start, 100.0 if share == 1.0 else math.log(share / (1 - share)))
    return layer


def contestants(width: int) -> Iterator[tuple[str, nn.Module]]:
    for cell in ("gru", "lstm", "rnn"):
        yield cell, find_cell(cell).build(width, width)
    for share in SHARES:
        yield f"vcgru, m = {share:g}", variable("vcgru", width, share)
    yield f"vcrnn, m = {SHARE:g}", variable("vcrnn", width, SHARE)
    yield f"vcgru, m about {SHARE:g}", variable("vcgru", width, SHARE, varying=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one width, a few seconds")
    parser.add_argument("--width", type=int, metavar="H", help="only this width (default: several; --quick: 512)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    widths = (args.width or QUICK_WIDTH,) if args.quick or args.width else WIDTHS
    found: dict[str, float] = {}
    for width in widths:
        layers = dict(contestants(width))
        print(f"\n{width} wide: microseconds for a token (times as fast as the GRU)\n")
        print(" " * 22 + "".join(f"{setting.name:>18}" for setting in SETTINGS))
        columns = []
        for setting in SETTINGS:
            # a training step is the same, whatever m is: the masks are made of all dimensions
            chosen = {n: x for n, x in layers.items() if not setting.training or n in ("gru", "lstm", "rnn", KEY)}
            runs = {name: partial(timed, setting.use(layer, width)) for name, layer in chosen.items()}
            columns.append(in_turns(runs, 3, MOST, (QUICK if args.quick else FULL) / len(SETTINGS)))
        for name in layers:
            cells = [
                f"{rounds.median(name) / used.batch / used.tokens * 1e6:.1f} ({rounds.ratio('gru', name):.2f})"
                if name in rounds.seconds
                else ""
                for rounds, used in zip(columns, SETTINGS, strict=True)
            ]
            print(f"{name:<22}" + "".join(f"{cell:>18}" for cell in cells))
        for setting, column in zip(SETTINGS, columns, strict=True):
            label = setting.name.replace(", ", "_")
            found[label] = round(column.ratio("gru", KEY), 3)
            if setting.name == "score, 32":
                found[f"{label}_varying"] = round(column.ratio("gru", f"vcgru, m about {SHARE:g}"), 3)
    print()
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
