"""Run benchmarks with glibc's default memory management, and with all memory kept in the process.

A softmax over many words allocates and frees hundreds of MB per step. By default glibc returns large blocks to the
kernel every time, and the next step pays for fresh pages. Environment variables of a process change that. They are read
at its start, so that a benchmark restarts itself to use them.
"""

import argparse
import json
import os
import subprocess
import sys

KEPT = {
    "MALLOC_MMAP_MAX_": "0",  # no block has pages of its own
    "MALLOC_TRIM_THRESHOLD_": str(16 * 2**30),  # bytes free at the end before any go back
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # huge pages, of which there are fewer to fetch
}


def add_memory_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--memory", choices=("default", "kept", "both"),
        help="return the memory of large tensors at once (glibc's default), keep it, or run both (default: as in the "
        "environment)",
    )  # fmt: skip


def _settings() -> dict[str, str]:
    """Return the settings with which this process started."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}


def memory_line() -> str:
    """Return a line for the head of a table: the memory setting."""
    settings, kept = (" ".join(f"{name}={value}" for name, value in values.items()) for values in (_settings(), KEPT))
    if settings:
        return f"memory kept: {settings}"
    return f"memory as glibc's malloc does by default: large tensors' pages go back at once; --memory kept: {kept}"


def run_again(memory: str | None) -> None:
    """Run this script again with the setting of --memory, and exit with its status, or return to continue here.

    With `both`, the last line is one JSON object: the figures of the default, and those of the other with the suffix
    `_kept`.
    """
    plain = {name: value for name, value in os.environ.items() if name not in KEPT}
    environments = {"default": plain, "kept": plain | KEPT}
    if memory is None or (memory != "both" and environments[memory] == dict(os.environ)):
        return
    if memory != "both":
        os.execve(sys.executable, [sys.executable, *sys.argv], environments[memory])
    found: dict[str, float] = {}
    for name, environment in environments.items():
        command = [sys.executable, *sys.argv, "--memory", name]  # of two values the last one counts
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = ""
            for line in process.stdout:
                print(line, end="", flush=True)
        if process.returncode != 0:
            sys.exit(process.returncode)
        print()
        found |= {key + ("_kept" if name == "kept" else ""): value for key, value in json.loads(line).items()}
    print(json.dumps(found))
    sys.exit()
