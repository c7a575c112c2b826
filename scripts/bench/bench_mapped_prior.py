#!/usr/bin/env python3
"""Measure the memory of several processes on one machine with the same prior, with mapped arrays and with arrays read.

    python scripts/bench/bench_mapped_prior.py PRIOR [--processes 2] [--head]

Every process loads the prior, and with --head creates a LogLinearHead over it, which has its own tables. When all are
ready, it reads /proc/PID/smaps_rollup: Rss, the memory that it sees, and Pss, in which n processes that share a page
have an n-th of it each. The memory before loading is subtracted.

The last line is one JSON object: MB per process, the mean of all. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import json
import mmap
import multiprocessing
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.prior import Prior, directory

ROLLUP = Path("/proc/self/smaps_rollup")
WIDTH = 64  # of the head


def memory() -> dict[str, float]:
    """Return Rss and Pss of this process in MB."""
    lines = [line.split() for line in ROLLUP.read_text(encoding="ascii").splitlines()[1:]]
    return {name.rstrip(":").lower(): int(size) * 1024 / 1e6 for name, size, *_ in lines if name in ("Rss:", "Pss:")}


def no_mapping(*_: object, **__: object) -> None:
    """Raise the error of a file system that cannot map files, so that arrays are read."""
    raise OSError


def load(prior: str, mapped: bool, head: bool, all_loaded: Barrier, results: Any) -> None:
    """Run one process, which puts its additional memory into `results`."""
    if not mapped:
        mmap.mmap = no_mapping  # type: ignore[assignment, misc]
    before = memory()
    all_loaded.wait()
    made: Any = Prior.load(prior)
    if head:
        made = LogLinearHead(made, WIDTH)
    gc.collect()
    all_loaded.wait()
    after = memory()
    all_loaded.wait()  # nobody ends before all have looked
    results.put({name: after[name] - before[name] for name in after})
    del made


def measured(prior: str, mapped: bool, head: bool, processes: int) -> dict[str, float]:
    """Return the means of all processes. They are forked, so that imports are not measured."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(processes), context.SimpleQueue()
    started = [context.Process(target=load, args=(prior, mapped, head, barrier, results)) for _ in range(processes)]
    for process in started:
        process.start()
    found = [results.get() for _ in started]
    for process in started:
        process.join()
    return {name: round(sum(row[name] for row in found) / processes, 1) for name in found[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prior", help="folder of `llrnn prior`")
    parser.add_argument("--processes", type=int, default=2, help="(default: 2)")
    parser.add_argument("--head", action="store_true", help="create the output layer, too")
    args = parser.parse_args()
    if not ROLLUP.exists():
        parser.error(f"expected {ROLLUP}, as Linux has, found none")
    size = (Path(args.prior) / directory.ARRAYS_FILE).stat().st_size
    print(f"{args.processes} processes, arrays of {size / 1e6:,.1f} MB", ", and a head" if args.head else "", sep="")
    figures: dict[str, float] = {}
    for name, mapped in (("mapped", True), ("read", False)):
        found = measured(args.prior, mapped, args.head, args.processes)
        print(f"{name:<8} Rss {found['rss']:>8,.1f} MB   Pss {found['pss']:>8,.1f} MB   each")
        figures |= {f"{name}_{kind}": value for kind, value in found.items()}
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
