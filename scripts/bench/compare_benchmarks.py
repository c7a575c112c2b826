#!/usr/bin/env python3
"""Compare the ratios of benchmarks with those stored in docs/results/benchmarks.json, to find slower code.

    python scripts/bench/compare_benchmarks.py [bench_generate …] [--keep] [--file FILE]

Every benchmark of the file runs (`python scripts/bench/NAME.py`, with the arguments in the file), unless some are
named. For the ratios in its last line, a JSON object, the file has stored values and the tolerance on the worse side:

    "bench_generate": {"arguments": ["--quick"], "ratios": {
        "generate_over_softmax": {"kept": 4.8, "worse": "less", "tolerance": 1.0}, …}}

The exit status is 1 if a ratio is worse than that, or is no longer measured. Ratios depend little on the load and the
speed of the machine: contestants take turns, by processor time (measuring.py). --keep writes the new ratios into the
file, for a change that is meant to change a ratio. It exits with 1 if a ratio is no longer measured, and keeps its
figure. `worse` and `tolerance` are edited by hand.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEPT = "docs/results/benchmarks.json"


def run(name: str, arguments: list[str]) -> dict[str, Any]:
    """Return the figures of a benchmark, whose table goes to stderr."""
    command = [sys.executable, str(ROOT / "scripts" / "bench" / f"{name}.py"), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", file=sys.stderr, flush=True)
    if done.returncode != 0:
        raise SystemExit(f"{name}: failed with status {done.returncode}; its error is above")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def verdict(kept: Mapping[str, Any], found: float | None) -> str:
    """Describe a ratio; begins with WORSE if it is worse than the tolerance allows."""
    if found is None:
        return "WORSE: no longer measured"
    by = found - kept["kept"] if kept["worse"] == "more" else kept["kept"] - found
    if by > kept["tolerance"]:
        return f"WORSE by {by:.3g}, where {kept['tolerance']:g} is allowed"
    return "better; --keep it" if by < -kept["tolerance"] else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all of the file)")
    parser.add_argument("--file", type=Path, default=ROOT / KEPT, help=f"(default: {KEPT})")
    parser.add_argument("--keep", action="store_true", help="write the new ratios into the file")
    args = parser.parse_args()
    benchmarks = json.loads(args.file.read_text(encoding="utf-8"))
    unknown = sorted({*args.names} - {*benchmarks})
    if unknown:
        parser.error(f"expected benchmarks of {args.file}, which are {', '.join(benchmarks)}; found {unknown[0]}")
    worse = lacking = False
    for name in args.names or benchmarks:
        figures = run(name, benchmarks[name]["arguments"])
        print(f"{name} {' '.join(benchmarks[name]['arguments'])}")
        for ratio, kept in benchmarks[name]["ratios"].items():
            found = figures.get(ratio)
            found = None if found is None or math.isnan(found) else found  # a contestant that failed has no figure
            said = verdict(kept, found)
            worse, lacking = worse or said.startswith("WORSE"), lacking or found is None
            shown = "" if found is None else f"{found:.3f}"
            print(f"  {ratio:<40}{kept['kept']:>10.3f}{shown:>10}   {said}".rstrip(), flush=True)
            if args.keep and found is not None:
                kept["kept"] = round(found, 3)
    if args.keep:
        args.file.write_text(json.dumps(benchmarks, indent=1) + "\n", encoding="utf-8")
    return int(lacking if args.keep else worse)


if __name__ == "__main__":
    sys.exit(main())
