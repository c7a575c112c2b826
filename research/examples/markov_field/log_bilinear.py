#!/usr/bin/env python3
"""The log-bilinear model over the preceding words (Jernite 2018, figure 4.7), with the words of a field.

    python log_bilinear.py --field DIR --texts FOLDER --out OUT [--width 30] [--context 2]

FOLDER has train.txt, valid.txt and test.txt. The model is `--arch llrnn_lbl`. Perplexities are those of `llrnn mrf
score`: of words and sentence ends, with all words outside the field as one further word. Training stops after two
epochs without a better one on valid. Finished steps are skipped. Other words, texts, rates or epochs than those of OUT
are an error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))  # what examples share

from example_parts.same_options import keep_options

import fairseq_llrnn
from fairseq_llrnn.errors import one_line_errors
from fairseq_llrnn.features.dictionary import SPECIALS, hash_symbols
from fairseq_llrnn.files.atomic_write import whole_file
from fairseq_llrnn.files.text_lines import iter_lines
from llrnn_research.markov_field.model import MarkovField

SPLITS = ("train", "valid", "test")
UNKNOWN = "UNKNOWN"  # no word of a lower-cased text


def write_text(source: Path, known: set[str], out: Path) -> None:
    """Write the text with all other words as UNKNOWN. Empty lines are no sentences."""
    with whole_file(out) as file:
        for _, line in iter_lines(source):
            if words := line.split():
                file.write(" ".join(word if word in known else UNKNOWN for word in words) + "\n")


def prepare(field: str, texts: Path, out: Path) -> Path:
    """Write the data folder, with a prior that makes a softmax of the log-linear layer.

    Raises OptionError: it was made from other words or texts.
    """
    from example_parts import processes  # imports fairseq

    known = set(MarkovField.load(field).words.symbols) - set(SPECIALS)
    digest = hashlib.sha256(b"".join((texts / f"{split}.txt").read_bytes() for split in SPLITS)).hexdigest()
    data = out / "data"
    is_there = (data / "prior").exists()
    keep_options(out, {"--field, its words": hash_symbols(sorted(known))[:8], "--texts": digest[:8]}, is_there)
    if not is_there:
        for split in SPLITS:
            write_text(texts / f"{split}.txt", known, out / f"{split}.txt")
        given = [argument for split in SPLITS for argument in (f"--{split}pref", str(out / f"{split}.txt"))]
        options = ["--only-source", "--destdir", str(data), "--padding-factor", "1", "--workers", "1"]
        processes.run("fairseq-preprocess", [*given, *options], out / "data.log")
        command = ["prior", "--dict", str(data / "dict.txt"), "--softmax", "--out", str(data / "prior")]
        processes.run("llrnn", command, out / "data.log")
    return data


def train_command(data: Path, args: argparse.Namespace, place: Path) -> list[str]:
    return [
        str(data), "--user-dir", str(Path(fairseq_llrnn.__file__).parent), "--task", "llrnn_language_modeling",
        "--prior", str(data / "prior"), "--arch", "llrnn_lbl", "--decoder-embed-dim", str(args.width),
        "--decoder-hidden-size", str(args.width), "--context-size", str(args.context), "--criterion", "log_linear",
        "--sample-break-mode", "eos", "--tokens-per-sample", "512", "--max-tokens", "2048", "--optimizer", "adagrad",
        "--lr", str(args.lr), "--patience", "2", "--max-epoch", str(args.epochs), "--no-epoch-checkpoints",
        "--required-batch-size-multiple", "1", "--num-workers", "0", "--seed", "1", "--cpu", "--save-dir", str(place),
    ]  # fmt: skip


def measure(args: argparse.Namespace) -> dict[str, float]:
    """Return perplexities of valid and test, and the processor seconds of the training."""
    from example_parts import processes

    with processes.alone(args.out):
        data = prepare(args.field, args.texts, args.out)
        place = args.out / f"width-{args.width}-context-{args.context}"
        place.mkdir(exist_ok=True)
        result = place.with_suffix(".json")
        keep_options(place, {"--lr": args.lr, "--epochs": args.epochs}, result.exists())
        if not result.exists():
            found = {"seconds": processes.run("fairseq-train", train_command(data, args, place), place / "train.log")}
            for split in SPLITS[1:]:
                said = place / f"{split}.json"
                said.unlink(missing_ok=True)
                command = ["score", "--path", str(place / "checkpoint_best.pt"), "--json"]
                processes.run("llrnn", command, place / "score.log", args.out / f"{split}.txt", said)
                found[split] = 2 ** json.loads(said.read_text(encoding="utf-8"))["bits_per_token"]
            with whole_file(result) as file:
                json.dump(found, file)
        return dict(json.loads(result.read_text(encoding="utf-8")))


def show(args: argparse.Namespace) -> int:
    found = measure(args)
    print("| log-bilinear, from left to right | perplexity of valid | of test | seconds |\n|---|---|---|---|")
    row = f"{found['valid']:.1f} | {found['test']:.1f} | {found['seconds']:.0f}"
    print(f"| D = {args.width}, {args.context} words before | {row} |")
    return 0


@one_line_errors("log_bilinear.py")
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--field", required=True, metavar="DIR", help="whose words the model has")
    parser.add_argument("--texts", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--out", required=True, type=Path, metavar="OUT")
    parser.add_argument("--width", type=int, default=30, metavar="D")
    parser.add_argument("--context", type=int, default=2, metavar="K", help="words that it sees (default: 2)")
    parser.add_argument("--lr", type=float, default=0.1, help="of Adagrad (default: 0.1)")
    parser.add_argument("--epochs", type=int, default=30, metavar="N", help="at most (default: 30)")
    args = parser.parse_args(arguments)
    return show(args)


if __name__ == "__main__":
    raise SystemExit(main())
