#!/usr/bin/env python3
"""Measure time and memory of `llrnn prior` for a large text.

    python scripts/bench/bench_prior.py [--quick] [--words 100000000] [--types 1000000] [--workers N] [--seed 1]
        [--only unigram …] [--folder DIR]

The text is generated: words sampled independently from a Zipf distribution over the types, 1 to 40 per sentence. Types
consist of syllables, so that many share their endings. One of twenty is a number, one of twenty begins with a capital.
Real text has fewer different n-grams than these independent words. All types are in the dictionary, those outside the
text with a count of 0.

    unigram      --suffixes --shapes --background unigram
    open         --suffixes --shapes --open-vocabulary characters; words that occur once are not in the dictionary
    trigrams     --background ngram:3
    pruned       --background 'ngram(3, prune=[0, 1, 3])'

For each: seconds of wall-clock time and of all processors, and the maximum memory of all its processes together
(resident pages, shared ones counted once per process), sampled every 0.1 seconds. The last line is one JSON object.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measuring import children_worked

ROOT = Path(__file__).resolve().parents[2]
FULL, QUICK = (100_000_000, 1_000_000), (1_000_000, 50_000)  # words, types
AT_ONCE = 2_000_000  # words that are generated together
LONGEST = 40  # words of a sentence
FEATURES = ("--suffixes", "20", "--shapes", "--top-words", "2500")
PRIORS = {
    "unigram": (*FEATURES, "--background", "unigram"),
    "open": (*FEATURES, "--open-vocabulary", "characters"),
    "trigrams": ("--top-words", "2500", "--background", "ngram:3"),
    "pruned": ("--top-words", "2500", "--background", "ngram(3, prune=[0, 1, 3])"),
}


def make_types(number: int, random: np.random.Generator) -> list[str]:
    """Return different words."""
    syllables = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "é", "an", "es", "ent", "ion")]
    types: dict[str, None] = {}
    while len(types) < number:
        lengths = random.integers(1, 6, number)
        drawn = random.integers(0, len(syllables), int(lengths.sum())).tolist()
        kinds = random.integers(0, 20, number).tolist()
        begin = 0
        for length, kind in zip(lengths.tolist(), kinds, strict=True):
            word = "".join(syllables[i] for i in drawn[begin : begin + length])
            types[str(drawn[begin] * 7 ** length) if kind == 0 else word.capitalize() if kind == 1 else word] = None
            begin += length
    return list(types)[:number]


def sentences(types: list[str], words: int, random: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield parts of a text, and the types in them."""
    odds = (1.0 / np.arange(1, len(types) + 1)).cumsum()
    spelled = np.array(types, dtype=object)
    for begin in range(0, words, AT_ONCE):
        number = min(AT_ONCE, words - begin)
        ids = np.searchsorted(odds, random.random(number) * odds[-1])
        ends = np.unique(np.append(random.integers(1, LONGEST, number // 8).cumsum(), number))
        tokens = spelled[ids]
        stops = ends[ends <= number] - 1
        tokens[stops] = tokens[stops] + "\n"
        yield " ".join(tokens.tolist()).replace("\n ", "\n"), ids


def generate(folder: Path, words: int, number: int, seed: int) -> None:
    """Write train.txt, dict.txt with all types, and frequent.txt with those that occur twice."""
    random = np.random.default_rng(seed)
    types = make_types(number, random)
    counts = np.zeros(number, dtype=np.int64)
    with (folder / "train.txt").open("w", encoding="utf-8") as file:
        for text, ids in sentences(types, words, random):
            file.write(text)
            counts += np.bincount(ids, minlength=number)
    for name, least in (("dict.txt", 0), ("frequent.txt", 2)):
        frequent = np.flatnonzero(counts >= least)
        lines = (f"{types[i]} {counts[i]}\n" for i in frequent[np.argsort(-counts[frequent], kind="stable")])
        (folder / name).write_text("".join(lines), encoding="utf-8")


def resident(process: int) -> int:
    """Return the bytes of a process and its children."""
    try:
        status = Path(f"/proc/{process}/statm").read_text().split()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        tasks = Path(f"/proc/{process}/task").iterdir()
        for task in tasks:  # a thread may have started them
            children += (task / "children").read_text().split()
    except OSError:
        return 0
    return int(status[1]) * os.sysconf("SC_PAGE_SIZE") + sum(resident(int(child)) for child in {*children})


def measure(command: list[str]) -> tuple[float, float, int, str]:
    """Return wall-clock seconds, processor seconds, the maximum memory in bytes, and the error, if there is one."""
    started, worked, most = time.perf_counter(), children_worked(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        messages: list[str] = []
        reader = threading.Thread(target=lambda: messages.append(process.stderr.read() if process.stderr else ""))
        reader.start()
        while process.poll() is None:
            most = max(most, resident(process.pid))
            time.sleep(0.1)
        reader.join()
    seconds, worked = time.perf_counter() - started, children_worked() - worked
    wrong = "" if process.returncode == 0 else f"status {process.returncode}: {messages[0].strip()[-300:]}"
    return seconds, worked, most, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK[0]:,} words of {QUICK[1]:,} types")
    parser.add_argument("--words", type=int, help=f"of the text (default: {FULL[0]:,})")
    parser.add_argument("--types", type=int, help=f"different words (default: {FULL[1]:,})")
    parser.add_argument("--workers", type=int, help="processes of llrnn prior (default: its own)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PRIORS, default=list(PRIORS))
    parser.add_argument("--folder", type=Path, help="folder for texts and priors (default: a temporary one)")
    args = parser.parse_args()
    sizes = QUICK if args.quick else FULL
    words, types = args.words or sizes[0], args.types or sizes[1]
    with tempfile.TemporaryDirectory(prefix="bench_prior.") as scratch:
        folder = (args.folder or Path(scratch)) / f"{words}-{types}-{args.seed}"  # of another size: another text
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "frequent.txt").exists():
            generate(folder, words, types, args.seed)
        size = (folder / "train.txt").stat().st_size
        print(f"{words:,} words of {types:,} types, {size / 1e6:,.0f} MB, seed {args.seed}", flush=True)
        more = [] if args.workers is None else ["--set", f"workers={args.workers}"]
        figures: dict[str, dict[str, float]] = {}
        failed = False
        for name in args.only:
            dictionary = "frequent.txt" if name == "open" else "dict.txt"
            command = [
                sys.executable, "-m", "fairseq_llrnn.cli.main", "prior", "--dict", str(folder / dictionary),
                "--count-text", str(folder / "train.txt"), "--out", str(folder / name), *PRIORS[name], *more,
            ]  # fmt: skip
            os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            seconds, worked, most, wrong = measure(command)
            if wrong:
                print(f"{name:<10} failed after {seconds:,.1f} s at {most / 2**30:.2f} GiB: {wrong}", flush=True)
                failed = True
                continue
            written = sum(path.stat().st_size for path in (folder / name).iterdir())
            print(
                f"{name:<10} {seconds:>8,.1f} s, {worked:>8,.1f} s of processors {most / 2**30:>7.2f} GiB   prior of "
                f"{written / 1e6:,.0f} MB", flush=True,
            )  # fmt: skip
            figures[name] = {
                "seconds": round(seconds, 1), "processor_seconds": round(worked, 1), "gib": round(most / 2**30, 2),
                "prior_mb": written // 10**6,
            }  # fmt: skip
        print(json.dumps({"words": words, "types": types, "seed": args.seed, "priors": figures}))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
