"""Train the rows of the thesis' Table 5.5, and measure their vectors like its Table 5.6.

    discourse_rows.py train    --data DIR --out OUT [--budget SECONDS] [ROW …]
    discourse_rows.py transfer --data DIR --out OUT --sets FOLDER [ROW …]
    discourse_rows.py table    --out OUT

DIR is the output of `llrnn discourse`, with train, valid and test. Each training has the same budget of processor time,
validations included. A training that starts from another row's encoder also has that row's time. A row is finished when
OUT/ROW/result.json exists. An interrupted row resumes. Other options than before are an error.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))  # what examples share

import numpy as np
from discourse_tables import tables
from example_parts.same_options import keep_options
from sentence_sets import FILES, read_set
from transfer import accuracy, of_pairs
from word_vectors import load_or_make, sums

import fairseq_llrnn
from fairseq_llrnn.errors import OptionError, one_line_errors
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.files.atomic_write import whole_file
from llrnn_research.discourse import OBJECTIVES
from llrnn_research.discourse.data import DICTIONARY, Split, load_split, read_description

USER_DIR = str(Path(fairseq_llrnn.__file__).parent)
HOUR = 3600.0
BEST = "checkpoint_best.pt"


@dataclass(frozen=True)
class Row:
    """A model: its encoder, its objectives, whether it reads words by spelling and characters, and its start."""

    encoder: str
    objectives: str
    reads_spelling: bool = False
    begins_with: str = ""  # another row, whose encoder has learned something else


ALL = ",".join(OBJECTIVES)
ROWS = {
    "bigru-order": Row("bigru", "order"),
    "bigru-next": Row("bigru", "next"),
    "bigru-conjunction": Row("bigru", "conjunction"),
    "bigru-next-conjunction": Row("bigru", "next,conjunction"),
    "bigru-order-conjunction": Row("bigru", "order,conjunction"),
    "bigru-all": Row("bigru", ALL),
    "gru-order": Row("gru", "order"),
    "gru-next": Row("gru", "next"),
    "gru-conjunction": Row("gru", "conjunction"),
    "gru-all": Row("gru", ALL),
    "cbow-order": Row("cbow", "order"),
    "cbow-next": Row("cbow", "next"),
    "cbow-conjunction": Row("cbow", "conjunction"),
    "cbow-all": Row("cbow", ALL),
    "spelling-all": Row("bigru", ALL, True),
    "order-then-next": Row("bigru", "next", begins_with="bigru-order"),
    "order-then-conjunction": Row("bigru", "conjunction", begins_with="bigru-order"),
}
OF_A_ROW = ("size", "budget", "lr", "dropout", "epoch_examples", "seed")  # options that make another row of it
WORDS, VECTORS = "words", "vectors"  # the comparisons of Table 5.6


def train_command(row: Row, data: Path, place: Path, args: argparse.Namespace) -> list[str]:
    """Return the command of the training whose checkpoints are in `place`."""
    spelling = ["--source-prior", str(args.out / "prior"), "--source-characters", "cnn"] if row.reads_spelling else []
    begin = ["--finetune-from-model", str(args.out / row.begins_with / BEST)] if row.begins_with else []
    seconds = args.budget + (seconds_of(args.out / row.begins_with / BEST) if row.begins_with else 0.0)
    return [
        "fairseq-train", str(data), "--user-dir", USER_DIR, "--task", "discourse", "--arch", "discourse_encoder",
        "--criterion", "discourse", "--objectives", row.objectives, "--encoder", row.encoder, "--sentence-dim",
        str(args.size), "--encoder-embed-dim", str(args.size // 2), "--optimizer", "adagrad", "--lr", str(args.lr),
        "--clip-norm", "5", "--batch-size", "64", "--max-words", "40", "--dropout", str(args.dropout),
        "--epoch-examples", str(args.epoch_examples),
        "--stop-time-hours", str(seconds / HOUR), "--max-epoch", "100000", "--seed", str(args.seed), "--save-dir",
        str(place), "--no-epoch-checkpoints", "--best-checkpoint-metric", "accuracy",
        "--maximize-best-checkpoint-metric", "--cpu", "--num-workers", "0", "--log-format", "json", "--log-interval",
        "100", *spelling, *begin,
    ]  # fmt: skip


def seconds_of(checkpoint: Path) -> float:
    """Return the seconds of a checkpoint's training. fairseq adds them to those of a training that starts from it."""
    from fairseq_llrnn.plugin.compat.loading import read_checkpoint

    return float(read_checkpoint(str(checkpoint))["extra_state"]["previous_training_time"])


def count_processor_time() -> None:
    """Let --stop-time-hours count processor time, without waiting for other processes.

    The log has the time so far before each validation.
    """
    from fairseq.trainer import Trainer

    def begin(self: Trainer, epoch: int) -> None:
        logging.getLogger("discourse_rows").info(json.dumps({"seconds": round(self.cumulative_training_time(), 1)}))
        begin_valid_epoch(self, epoch)

    begin_valid_epoch = Trainer.begin_valid_epoch
    Trainer._local_cumulative_training_time = lambda self: time.process_time() + self._previous_training_time
    Trainer.begin_valid_epoch = begin


def train(names: Sequence[str], args: argparse.Namespace) -> None:
    """Train and measure every unfinished row."""
    from example_parts import processes  # imports fairseq

    count_processor_time()
    for name in names:
        place, row = args.out / name, ROWS[name]
        place.mkdir(parents=True, exist_ok=True)
        is_done = (place / "result.json").exists()
        keep_options(place, {f"--{option.replace('_', '-')}": getattr(args, option) for option in OF_A_ROW}, is_done)
        if is_done:
            continue
        if row.begins_with and not (args.out / row.begins_with / "result.json").exists():
            raise OptionError(f"{name}: expected a finished row {row.begins_with}, found none; train it first")
        with processes.alone(place):
            if row.reads_spelling and not (args.out / "prior").exists():
                spelling = ["--suffixes", "3", "--shapes", "--top-words", "all"]
                command = ["prior", "--dict", str(args.data / DICTIONARY), *spelling, "--out", str(args.out / "prior")]
                processes.run("llrnn", command, args.out / "prior.log")
            program, *arguments = train_command(row, args.data, place, args)
            processes.run(program, arguments, place / "train.log")
            before = seconds_of(args.out / row.begins_with / BEST) if row.begins_with else 0.0
            seconds = seconds_of(place / "checkpoint_last.pt") - before  # of all processes, if one was interrupted
            found = {"row": name, "seconds": round(seconds), **measure(place / BEST, row, args.data)}
            with whole_file(place / "result.json") as file:
                json.dump(found, file)
            shown = ", ".join(f"{objective} {value:.1%}" for objective, value in found["accuracy"].items())
            print(f"{name}: {shown}; {seconds:.0f} s", flush=True)


def measure(checkpoint: Path, row: Row, data: Path) -> dict[str, Any]:
    """Return accuracies on test, with each sentence encoded once, and the number of training examples."""
    import torch

    from fairseq_llrnn.plugin.compat.loading import read_checkpoint
    from llrnn_research.discourse.plugin.encoding import load_encoder

    encoder, split = load_encoder(str(checkpoint), str(data), None, 8192), load_split(data, "test")
    objectives = row.objectives.split(",")
    needed = np.unique(np.concatenate([split.examples[name][:, :-1].ravel() for name in objectives]))
    longest = encoder.task.cfg.max_words
    rows = torch.from_numpy(encoder.vectors([split.sentence(number)[:longest].tolist() for number in needed]))
    found: dict[str, float] = {}
    for name in objectives:
        examples = split.examples[name]
        right = 0
        for part in np.array_split(examples, max(1, len(examples) // 1000)):
            vectors = rows[torch.from_numpy(np.searchsorted(needed, part[:, :-1]))]
            with torch.no_grad():
                answers = encoder.model.classifiers(name, vectors).argmax(1).numpy()
            right += int((answers == part[:, -1]).sum())
        found[name] = right / len(examples)
    updates = read_checkpoint(str(checkpoint))["optimizer_history"][-1]["num_updates"]
    return {"accuracy": found, "chance": chances(split), "updates": updates}


def chances(split: Split) -> dict[str, float]:
    """Return the frequency of the most frequent answer of each objective."""
    return {name: float(np.bincount(rows[:, -1]).max() / len(rows)) for name, rows in split.examples.items()}


def transfer(names: Sequence[str], args: argparse.Namespace) -> None:
    """Measure every row on the public sets: alone, with words, with word vectors, and these two by themselves."""
    from llrnn_research.discourse.plugin.encoding import load_encoder

    num_words = len(load_dictionary(args.data / DICTIONARY))
    sets = [read_set(name, args.sets) for name in args.only or FILES]
    vectors = load_or_make(args.data, args.out / "word_vectors.npy", args.size)
    symbols = load_dictionary(args.data / DICTIONARY).symbols
    index, lower = {word: i for i, word in enumerate(symbols)}, read_description(args.data)["lower"]
    for data in sets:
        parts = list(zip(*data.texts, strict=True))
        ids = [[[index.get(w, num_words) for w in (s.lower() if lower else s).split()] for s in part] for part in parts]
        of_words = of_pairs([sums(vectors, part) for part in ids])
        measured = partial(_measured, data=data, out=args.out)
        measured(WORDS, None, True)
        measured(VECTORS, of_words, False)
        for name in names:
            if all(_result(args.out, f"{name}{more}", data.name).exists() for more in ("", f"+{WORDS}", f"+{VECTORS}")):
                continue
            encoder = load_encoder(str(args.out / name / BEST), str(args.data), None, 8192)
            encoded = of_pairs([np.concatenate(list(encoder.blocks(part, data.name))) for part in parts])
            measured(name, encoded, False)
            measured(f"{name}+{WORDS}", encoded, True)
            measured(f"{name}+{VECTORS}", np.hstack([encoded, of_words]), False)


def _result(out: Path, features: str, name: str) -> Path:
    return out / "transfer" / f"{features} {name}.json"


def _measured(features: str, dense: np.ndarray | None, with_words: bool, data: Any, out: Path) -> None:
    place = _result(out, features, data.name)
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    found = {"features": features, "set": data.name, "accuracy": accuracy(data, dense, with_words)}
    with whole_file(place) as file:
        json.dump(found, file)
    print(f"{features} on {data.name}: {found['accuracy']:.1%}", flush=True)


def act(args: argparse.Namespace) -> int:
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        raise OptionError(f"{unknown[0]}: expected one of {', '.join(ROWS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    if args.action == "table":
        print(tables(args.out))
    else:
        {"train": train, "transfer": transfer}[args.action](args.rows or list(ROWS), args)
    return 0


@one_line_errors("discourse_rows.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="rows of Tables 5.5 and 5.6")
    parser.add_argument("action", choices=("train", "transfer", "table"))
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)} (default: all)")
    parser.add_argument("--data", type=Path, default=Path("DATA"), help="what `llrnn discourse` wrote")
    parser.add_argument("--out", type=Path, required=True, help="where results go")
    parser.add_argument("--sets", type=Path, default=Path("../shared/data/sentences"), help="the public sets")
    parser.add_argument("--only", nargs="+", default=[], choices=tuple(FILES), help="of `transfer`: some of the sets")
    parser.add_argument("--budget", type=float, default=HOUR, help="seconds of a training (default: an hour)")
    parser.add_argument("--size", type=int, default=256, help="width of a sentence's vector (default: 256)")
    parser.add_argument("--lr", type=float, default=0.005, help="of Adagrad (default: 0.005)")
    parser.add_argument("--dropout", type=float, default=0.0, help="of words' vectors (default: 0, as in the thesis)")
    parser.add_argument("--epoch-examples", type=int, default=8000, help="as of the task (default: 8000)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_intermixed_args()
    return act(args)


if __name__ == "__main__":
    sys.exit(main())
