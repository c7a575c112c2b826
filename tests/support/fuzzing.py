"""Feeds damaged inputs to what must read them or refuse them, in processes of their own, within time and memory.

A target (fuzz_targets.py) says "accepted" or "refused". Anything else is a fault: another exception, too much time or
memory, the death of the process. Input `i` of a target depends on the seed, the target's name and i alone, so that a
fault can be made again.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import shutil
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TextIO

from fuzz_targets import Target, check_said
from hostile_readers import Reader, readers
from mutations import mutate
from read_counts import check_counts, counted

from fairseq_llrnn.errors import LLRNNError

SECONDS = 10  # of processor time, for one input
MEMORY = 1 << 30  # bytes beyond what the process has when it begins
AT_ONCE = 500  # inputs of one process


class TooSlowError(Exception):
    """An input that took more than SECONDS."""


@dataclass
class Outcome:
    """What became of the inputs of one target."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, str]] = field(default_factory=list)  # the input's number, and what happened
    slowest: float = 0.0  # seconds
    most: float = 0.0  # MiB that the process had at its peak, beyond what it began with


def reader_target(reader: Reader) -> Target:
    """One of its sound files, damaged, then read."""

    def run(place: Path, rng: random.Random) -> str:
        place.mkdir()
        file = place / reader.file
        file.write_bytes(mutate(rng.choice(reader.samples), rng))
        try:
            with counted() as counts:
                reader.read(file)
            check_counts(counts)
        except LLRNNError as error:
            check_said(str(error))
            named = str(file) in str(error) or not reader.names_file
            assert named, f"a message that does not name the file: {str(error)[:200]}"
            return "refused"
        return "accepted"

    return run


def reader_targets() -> dict[str, Target]:
    return {reader.name: reader_target(reader) for reader in readers()}


def fuzz(target: Target, name: str, inputs: int, seed: int, folder: Path) -> Outcome:
    """Feed `inputs` damaged inputs to a target; `folder` is for files meanwhile."""
    outcome, done = Outcome(), 0
    while done < inputs:
        done = _batch(target, name, range(done, min(inputs, done + AT_ONCE)), seed, folder, outcome)
    return outcome


def _batch(target: Target, name: str, numbers: range, seed: int, folder: Path, outcome: Outcome) -> int:
    """A process with some inputs; returns the number of the next one, which comes after one that killed it."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            with os.fdopen(write_end, "w") as report:
                _feed(target, name, numbers, seed, folder, report)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write_end)
    following = numbers.start
    with os.fdopen(read_end) as report:
        for line in report:
            record = json.loads(line)
            if "begins" in record:
                following = record["begins"]
                continue
            outcome.counts[record["outcome"]] += 1
            outcome.slowest = max(outcome.slowest, record["seconds"])
            outcome.most = max(outcome.most, record["memory"])
            if record["outcome"] == "fault":
                outcome.faults.append((record["number"], record["what"]))
            following = record["number"] + 1
    _, status = os.waitpid(child, 0)
    if following < numbers.stop:
        outcome.counts["fault"] += 1
        outcome.faults.append((following, f"the process died: {os.waitstatus_to_exitcode(status)}"))
        return following + 1
    return following


def _feed(target: Target, name: str, numbers: range, seed: int, folder: Path, report: TextIO) -> None:
    faulthandler.disable()  # a death is reported below
    signal.signal(signal.SIGPROF, _too_slow)
    began = _virtual_memory()
    resource.setrlimit(resource.RLIMIT_AS, (began + MEMORY, began + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS * 30, SECONDS * 30))  # for code that does not see the alarm
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    place = folder / "input"
    for number in numbers:
        print(json.dumps({"begins": number}), file=report, flush=True)
        start = time.process_time()
        what = ""
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = target(place, random.Random(f"{seed}/{name}/{number}"))
        except Exception as error:
            found, what = "fault", describe(error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        shutil.rmtree(place, ignore_errors=True)
        peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        seconds = time.process_time() - start
        record = {"number": number, "outcome": found, "seconds": seconds, "memory": peak, "what": what}
        print(json.dumps(record), file=report, flush=True)


def describe(error: BaseException) -> str:
    """The exception, and where in our code it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "fairseq_llrnn" in frame.filename] or list(frames)
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {where}: {' '.join(str(error).split())[:300]}"


def again(target: Target, name: str, number: int, seed: int, place: Path) -> str:
    """Input `number` once more, in this process, its files left at `place`."""
    return target(place, random.Random(f"{seed}/{name}/{number}"))


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlowError(f"more than {SECONDS} seconds")


def _virtual_memory() -> int:
    """Bytes of this process' address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def grouped(outcomes: Mapping[str, Outcome]) -> Iterator[tuple[str, int, int, str]]:
    """Faults of the same place once: (target, how many, the first one's number, what)."""
    for name, outcome in outcomes.items():
        kinds: dict[str, list[int]] = {}
        first: dict[str, str] = {}
        for number, what in outcome.faults:
            key = what.split(":")[0] + ":" + what.split(":")[1][:6] if ":" in what else what
            kinds.setdefault(key, []).append(number)
            first.setdefault(key, what)
        for key, numbers in kinds.items():
            yield name, len(numbers), numbers[0], first[key]
