"""Recurrent cells on characters, by their operations: bits per character of English novels (run.sh).

    variable_computation.py prepare --novels FOLDER --out OUT [--every 60]   texts in characters, data-bin, prior
    variable_computation.py train --out OUT [SYSTEM …] [--seeds 1 2 3]       trains; finished runs are skipped
    variable_computation.py table --out OUT                                  the table of all finished runs

FOLDER has train.txt.gz, valid.txt.gz and test.txt.gz, tokenised, one sentence per line. A text in characters has them
separated by spaces, with ▁ for a space. Each run is OUT/models/SYSTEM-SEED: train.log and checkpoints.
"""

import argparse
import gzip
import json
import math
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, OptionError, one_line_errors
from fairseq_llrnn.networks.recurrent import find_cell
from llrnn_research.variable_computation.variable_cells import equivalent_rnn

SPACE = "▁"
SHORTEST, LONGEST, RAREST = 20, 200, 20  # characters of a sentence; occurrences of a character
PARTS = {"valid": 20, "test": 40}  # every so manieth sentence
WIDTH = 128
USER_DIR = str(Path(fairseq_llrnn.__file__).parent)
TRAINING = (
    *("--task", "llrnn_language_modeling", "--user-dir", USER_DIR, "--arch", "llrnn_lm", "--criterion", "log_linear"),
    *("--decoder-layers", "1", "--sample-break-mode", "eos", "--tokens-per-sample", "256", "--max-tokens", "2000"),
    *("--optimizer", "adam", "--lr", "0.004", "--lr-scheduler", "polynomial_decay", "--warmup-updates", "100"),
    *("--clip-norm", "1.0", "--required-batch-size-multiple", "1", "--num-workers", "0"),
    *("--valid-subset", "valid,test", "--cpu"),
    *("--no-epoch-checkpoints", "--no-last-checkpoints", "--log-format", "json", "--log-interval", "100"),
)


@dataclass(frozen=True)
class System:
    """One row of the table."""

    name: str
    cell: str
    width: int
    options: tuple[str, ...] = ()


def constant(cell: str, width: int) -> System:
    return System(f"{cell}-{width}", cell, width)


def variable(name: str, cell: str, target: float, penalty: float, *options: str) -> System:
    aim = ("--vc-target", str(target), "--vc-penalty", str(penalty), "--vc-sharpness", "2")
    return System(name, cell, WIDTH, (*aim, *options))


SYSTEMS = (
    variable("vcgru", "vcgru", 0.4, 0.1),
    variable("vcgru-strict", "vcgru", 0.4, 1.0),
    variable("vcgru-guided", "vcgru", 0.3, 1.0, "--vc-guide", SPACE),
    variable("vcrnn", "vcrnn", 0.4, 0.1),
    constant("gru", 128),
    constant("gru", 106),
    constant("gru", 57),
    constant("lstm", 50),
    constant("rnn", 128),
    constant("rnn", 100),
)


# ---- texts ----------------------------------------------------------------------------------------------------------


def sentences(path: Path, every: int) -> list[str]:
    """Yield every `every`-th sentence that is neither very short nor very long."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        found = [line.strip() for line in stream if SHORTEST <= len(line.strip()) <= LONGEST]
    return found[every - 1 :: every]


def in_characters(sentence: str) -> str:
    return " ".join(SPACE if character == " " else character for character in sentence)


def prepare(novels: Path, out: Path, every: int) -> None:
    """Write texts, dictionary, data-bin and prior."""
    texts = {split: sentences(novels / f"{split}.txt.gz", n) for split, n in {"train": every, **PARTS}.items()}
    counts = Counter(symbol for text in texts["train"] for symbol in in_characters(text).split(" "))
    kept = [symbol for symbol, count in counts.most_common() if count >= RAREST]
    place = out / "text"
    place.mkdir(parents=True, exist_ok=True)
    (place / "dict.txt").write_text("".join(f"{symbol} {counts[symbol]}\n" for symbol in kept), encoding="utf-8")
    for split, text in texts.items():
        (place / f"{split}.txt").write_text("".join(f"{in_characters(line)}\n" for line in text), encoding="utf-8")
        print(f"{split}: {len(text):,} sentences, {sum(map(len, text)):,} characters")
    names = [f"--{split}pref={place / split}.txt" for split in texts]
    data = ["--only-source", f"--srcdict={place / 'dict.txt'}", f"--destdir={out / 'data-bin'}"]
    execute(["fairseq-preprocess", *data, *names], out / "preprocess.log")
    prior = ["--dict", str(out / "data-bin" / "dict.txt"), "--softmax", "--out", str(out / "data-bin" / "prior")]
    execute(["llrnn", "prior", *prior], out / "prior.log")


def execute(command: Sequence[str], log: Path) -> None:
    """Run a command, with its messages in the log. Raises DataError if it fails."""
    with open(log, "w", encoding="utf-8") as stream:
        done = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise DataError(f"{command[0]} failed; all that it said is in {log}")


# ---- training -------------------------------------------------------------------------------------------------------


def train(system: System, seed: int, out: Path, epochs: int) -> None:
    place = out / "models" / f"{system.name}-{seed}"
    if measured(place / "train.log", epochs):
        return
    place.mkdir(parents=True, exist_ok=True)
    updates = epochs * updates_per_epoch(out)
    options = list(system.options)
    if find_cell(system.cell).constant is not None:
        options += ["--vc-sharpen-updates", str(updates // 2)]
    sizes = ["--cell", system.cell, "--decoder-embed-dim", str(system.width)]
    sizes += ["--decoder-hidden-size", str(system.width)]
    until = ["--max-epoch", str(epochs), "--total-num-update", str(updates), "--seed", str(seed)]
    data = [str(out / "data-bin"), "--prior", str(out / "data-bin" / "prior"), "--save-dir", str(place)]
    execute(["fairseq-train", *data, *TRAINING, *sizes, *until, *options], place / "train.log")


def updates_per_epoch(out: Path) -> int:
    """Estimate the updates of an epoch: batches have sentences of one length, 2,000 characters in total."""
    text = (out / "text" / "train.txt").read_text(encoding="utf-8")
    return math.ceil((text.count(" ") + 2 * text.count("\n")) / 1900)


# ---- results --------------------------------------------------------------------------------------------------------


def measured(log: Path, epochs: int) -> dict[str, float]:
    """Return the results of the last epoch, or nothing if it has not ended."""
    if not log.exists():
        return {}
    found: dict[str, float] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        head, brace, rest = line.partition("{")
        for split in ("valid", "test"):
            if brace and f"| {split} |" in head and rest.endswith("}"):
                facts = {key: float(value) for key, value in json.loads("{" + rest).items()}
                found |= facts if facts["epoch"] == epochs else {}
    return found if "test_nll_loss" in found else {}


def table(out: Path, epochs: int) -> None:
    print("| system | width | mean m | equivalent RNN | bits per character, test | each seed |")
    print("|---|---|---|---|---|---|")
    for system in SYSTEMS:
        places = sorted((out / "models").glob(f"{system.name}-[0-9]"))
        runs = [found for place in places if (found := measured(place / "train.log", epochs))]
        if not runs:
            continue
        whole = equivalent_rnn(find_cell(system.cell).multiplications(system.width, system.width))
        dimension = mean(r.get("test_rnn_dimension", whole) for r in runs)
        share = mean(r.get("test_computation", 1.0) for r in runs)
        bits = [r["test_nll_loss"] for r in runs]
        each = ", ".join(f"{b:.3f}" for b in bits)
        print(
            f"| {system.name} | {system.width} | {share:.2f} | {dimension:.0f} | {mean(bits):.3f} | {each} |"
        )


def mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)


@one_line_errors("variable_computation.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = parser.add_subparsers(dest="stage", required=True)
    for name in ("prepare", "train", "table"):
        stage = stages.add_parser(name)
        stage.add_argument("--out", type=Path, required=True)
        stage.add_argument("--epochs", type=int, default=3)
        if name == "prepare":
            stage.add_argument("--novels", type=Path, required=True)
            stage.add_argument("--every", type=int, default=60)
        if name == "train":
            stage.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(s.name for s in SYSTEMS))
            stage.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    if args.stage == "prepare":
        prepare(args.novels, args.out, args.every)
    elif args.stage == "table":
        table(args.out, args.epochs)
    else:
        known = {system.name: system for system in SYSTEMS}
        for name in args.systems:
            if name not in known:
                raise OptionError(f"SYSTEM: expected one of {', '.join(known)}, found {name!r}")
        for seed in args.seeds:
            for name in args.systems or known:
                train(known[name], seed, args.out, args.epochs)


if __name__ == "__main__":
    sys.exit(main())
