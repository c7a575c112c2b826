"""Run jobs in forked processes, several at once, with a progress bar.

A new Python process would import torch and fairseq, which takes longer than a small training. The calling process
computes nothing with torch, so that no thread and no GPU is in use when it forks.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from tqdm import tqdm

from fairseq_llrnn.errors import LLRNNError, as_one_line

FAILURE, LOG = "failure.txt", "log.txt"  # in the folder of a job
Work = Callable[[], None]


def run_all(works: Mapping[Path, Work], seconds: Mapping[Path, float], num_processes: int, bar: tqdm[None]) -> None:
    """Run each function in its own process. A failed one leaves its reason in FAILURE.

    Args:
        works: by folder.
        seconds: estimates, by folder, for the progress bar.
    """
    context = multiprocessing.get_context("fork")
    waiting, running = [*works], dict[int, tuple[Path, ForkProcess]]()
    try:
        while waiting or running:
            while waiting and len(running) < num_processes:
                place = waiting.pop(0)
                place.mkdir(parents=True, exist_ok=True)
                (place / FAILURE).unlink(missing_ok=True)
                process = context.Process(target=_in_process, args=(works[place], place))
                bar.set_postfix_str(" ".join(place.parts[-2:]))
                process.start()
                running[process.sentinel] = place, process
            for sentinel in wait([*running]):
                assert isinstance(sentinel, int)
                place, process = running.pop(sentinel)
                process.join()
                if process.exitcode and not (place / FAILURE).exists():
                    reason = f"the process ended with status {process.exitcode}, perhaps for lack of memory"
                    (place / FAILURE).write_text(f"{reason}; see {place / LOG}\n", encoding="utf-8")
                bar.update(seconds[place])
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def failure_of(place: Path) -> str | None:
    """Return the reason why a job failed, or None."""
    path = place / FAILURE
    return path.read_text(encoding="utf-8").strip() if path.exists() else None


def _in_process(work: Work, place: Path) -> None:
    """Run a function in a new process, with its output in LOG."""
    import torch

    with (place / LOG).open("a", encoding="utf-8", buffering=1) as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
        sys.stdout = sys.stderr = log
        logging.basicConfig(stream=log, level=logging.WARNING, force=True)
        torch.set_num_threads(1)
        try:
            work()
        except KeyboardInterrupt:
            sys.exit(1)
        except (LLRNNError, OSError) as error:
            (place / FAILURE).write_text(f"{as_one_line(str(error))}\n", encoding="utf-8")
            sys.exit(2)
