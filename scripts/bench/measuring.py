"""Measure times and memory of benchmarks, on a CPU or a GPU: processor time, contestants in turn, ratios within a
round.

Other load on the machine falsifies wall-clock time, and figures that are measured at different moments. So the clock of
a CPU counts the processor time of the process (all of its threads), every round has each contestant once, and a ratio
is the median over the rounds.
"""

import argparse
import ctypes
import math
import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line with --device and --threads, and let torch use these threads.

    It exits with one message if --device names a GPU and torch has none.
    """
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="device to measure on (default: cpu)")
    parser.add_argument("--threads", type=int, default=1, help="of torch on the CPU (default: 1)")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for CPUs"
        parser.error(
            f"--device cuda: expected a GPU that torch can use, found none (torch {torch.__version__}, {built}); "
            "remove it, or use a machine with one"
        )
    torch.set_num_threads(args.threads)
    return args


def device_name(args: argparse.Namespace) -> str:
    """Return the device for the head of a table."""
    return torch.cuda.get_device_name() if args.device == "cuda" else f"CPU, {torch.get_num_threads()} threads"


def clock(device: torch.device | str = "cpu") -> float:
    """Return seconds: of the processor, or of the GPU."""
    if torch.device(device).type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def children_worked() -> float:
    """Return the processor seconds of finished child processes."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def worked(process: int) -> float:
    """Return the processor seconds of another process so far, on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(run: Callable[[], object], device: torch.device | str = "cpu") -> float:
    """Return the seconds of a call."""
    begin = clock(device)
    run()
    return clock(device) - begin


def resident(field: str) -> int:
    """Return the bytes of VmRSS (now) or VmHWM (the peak since it was reset) of this process, on Linux."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def peak_memory(run: Callable[[], object], device: torch.device | str = "cpu") -> int:
    """Return the peak bytes of a call, minus those before it: by torch's allocator, or resident ones on a CPU.

    On a CPU, call `return_freed_blocks` once before.
    """
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
    before = resident("VmRSS")
    run()
    return resident("VmHWM") - before


def return_freed_blocks() -> None:
    """Let glibc return freed blocks to the system from now on. Otherwise resident memory includes unused blocks."""
    libc = ctypes.CDLL(None)
    libc.mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD
    libc.malloc_trim(0)


@dataclass(frozen=True)
class Rounds:
    """The seconds of each contestant, one for each round."""

    seconds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the time of `name` over that of `other`, the median of the rounds."""
        return statistics.median(a / b for a, b in zip(self.seconds[name], self.seconds[other], strict=True))


def in_turns(contestants: Mapping[str, Callable[[], float]], least: int, most: int, budget: float = math.inf) -> Rounds:
    """Run rounds of all contestants, after a warm-up.

    Args:
        contestants: by name, functions that run a contestant and return its seconds.
        least, most: number of rounds.
        budget: measured seconds after which no further round begins, except for the `least` ones.
    """
    for run in contestants.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for done in range(most):
        if done >= least and sum(map(sum, seconds.values())) > budget:
            break
        for name, run in contestants.items():
            seconds[name].append(run())
    return Rounds(seconds)
