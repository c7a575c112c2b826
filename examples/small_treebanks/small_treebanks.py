"""Language models of a small treebank, and their loss on words that training lacks (run.sh).

    small_treebanks.py train --ud FOLDER --out OUT [ARM …] [--seeds 1 2 3]     trains and measures unfinished runs
    small_treebanks.py table --out OUT                                         the table of all results
    small_treebanks.py commands --ud FOLDER --out OUT [ARM …]                  the command lines

OUT is the output of small_texts.py. Each run is OUT/models/ARM-SEED: prior, train.log, checkpoints, result.json. Losses
are in nats, with </s>, as in fairseq. Words are *unseen* if the training text lacks them.
"""

import argparse
import json
import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

from small_texts import execute

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, OptionError, one_line_errors
from fairseq_llrnn.lexicon.readers.conllu import treebank

USER_DIR = str(Path(fairseq_llrnn.__file__).parent)
SIZES = ("--decoder-embed-dim", "256", "--decoder-hidden-size", "256", "--decoder-layers", "2", "--dropout", "0.3")
TRAINING = (
    *("--sample-break-mode", "eos", "--tokens-per-sample", "512", "--max-tokens", "2048"),
    *("--optimizer", "adam", "--lr", "0.002", "--clip-norm", "1.0", "--patience", "3", "--max-epoch", "30"),
    *("--no-epoch-checkpoints", "--no-last-checkpoints", "--required-batch-size-multiple", "1", "--num-workers", "0"),
    *("--log-format", "simple", "--cpu"),
)
OURS = ("--task", "llrnn_language_modeling", "--user-dir", USER_DIR)
LOG_LINEAR = (*OURS, "--arch", "llrnn_lm", "--criterion", "log_linear", "--bf16-products")
ADAPTIVE = (
    *("--task", "language_modeling", "--arch", "lstm_lm", "--decoder-out-embed-dim", "256"),
    *("--criterion", "adaptive_loss", "--adaptive-softmax-cutoff", "1000,4000", "--ddp-backend", "legacy_ddp"),
)
SCORING = ("--num-workers", "0", "--output-word-probs")
VALID = re.compile(r"valid on 'valid' subset \| loss ([0-9.]+) .*\| ppl ([0-9.]+)")
# A word and its log-probability, as fairseq-eval-lm --output-word-probs writes them.
SCORED = re.compile(r"(\S+) \[(-?\d+\.\d+|-inf|nan)\](?:\t|$)")


@dataclass(frozen=True)
class Arm:
    """One row of the table."""

    name: str
    what: str
    prior: tuple[str, ...] | None  # options of llrnn prior; None: fairseq's own model
    treebanks: tuple[str, ...] = ()  # the splits that features come from
    training: tuple[str, ...] = ()  # options that come after those of all arms
    counts: bool = True  # whether the prior counts the training text

    def prior_command(self, ud: Path, out: Path, place: Path) -> list[str]:
        sources = ["--count-text", str(out / "text" / "train.txt")] if self.counts else []
        if self.treebanks:
            sources += ["--conllu", *(str(treebank(ud, split)) for split in self.treebanks)]
        data = ["--dict", str(out / "data-bin" / "dict.txt"), "--out", str(place)]
        return ["llrnn", "prior", *data, *sources, *(self.prior or ())]

    def train_command(self, out: Path, place: Path, seed: int, extra: Sequence[str] = ()) -> list[str]:
        kind = ADAPTIVE if self.prior is None else (*LOG_LINEAR, "--prior", str(place / "prior"))
        where = ("--save-dir", str(place), "--seed", str(seed))
        return ["fairseq-train", str(out / "data-bin"), *kind, *SIZES, *TRAINING, *self.training, *where, *extra]

    def score_command(self, out: Path, place: Path) -> list[str]:
        ours = (*OURS, "--prior", str(place / "prior"))
        task = ADAPTIVE[:2] if self.prior is None else ours
        options = (*task, "--path", str(place / "checkpoint_best.pt"), "--gen-subset", "test", "--cpu")
        batches = ("--sample-break-mode", "eos", "--max-tokens", "1024", "--required-batch-size-multiple", "1")
        return ["fairseq-eval-lm", str(out / "data-bin"), *options, *batches, *SCORING]


TRAIN, ALL = ("train",), ("train", "dev", "test")
SUFFIXES, OFF = ("--suffixes",), ("--set", "words.guess=off")
MORPHEMES = {n: ("--set", "words.morphemes=morfessor", f"words.morpheme_floor={n}") for n in (10, 50)}
BEFORE = ("--top-words", "2500", *OFF)  # what README said until words were guessed
# docs/guides/training-and-evaluation.md, with more epochs; additions are the same for a softmax and for ours
TUNED = (
    *("--tie-features", "--dropout", "0.4", "--max-tokens", "1024", "--lr-scheduler", "reduce_lr_on_plateau"),
    *("--lr-shrink", "0.4", "--lr-patience", "0", "--patience", "5", "--max-epoch", "60"),
)
PENALTIES = ("--activation-penalty", "2", "--change-penalty", "1")
REGULARISED = {
    "tuned": (),
    "rate-0.0005": ("--lr", "0.0005"),
    "sgd": ("--optimizer", "sgd", "--lr", "5"),
    "dropout-0.6": ("--dropout", "0.6"),
    "variational": ("--variational-dropout",),
    "weight-drop-0.5": ("--weight-drop", "0.5"),
    "penalties": PENALTIES,
    "awd": ("--variational-dropout", "--weight-drop", "0.5", *PENALTIES),
    "mogrifier": ("--cell", "mogrifier"),
}
# The search for the best softmax, with the training of "tuned".
GRID = {
    f"{width}-{dropout}": (*("--decoder-embed-dim", width, "--decoder-hidden-size", width), "--dropout", dropout)
    for width in ("128", "256")
    for dropout in ("0.3", "0.5", "0.7")
}
PLAIN = (
    Arm("softmax", "softmax", ("--softmax",), counts=False),
    Arm("softmax-unigram", "softmax over our unigram", ("--top-words", "all")),
    Arm("adaptive", "fairseq's adaptive softmax", None),
    Arm("before", "treebank and suffixes, M = 2,500, nothing guessed", (*SUFFIXES, *BEFORE), TRAIN),
    Arm("guess-off", "treebank and suffixes, nothing guessed", (*SUFFIXES, *OFF), TRAIN),
    Arm("spelling", "suffixes, no treebank", SUFFIXES),
    Arm("spelling-shapes", "suffixes and shapes, no treebank", (*SUFFIXES, "--shapes")),
    Arm("guess", "treebank and suffixes, unknown words guessed", SUFFIXES, TRAIN),
    *(Arm(f"morphemes-{n}", f"morphemes that {n} words have, no treebank", how) for n, how in MORPHEMES.items()),
    *(
        Arm(f"both-{n}", f"suffixes and morphemes that {n} words have, no treebank", (*SUFFIXES, *how))
        for n, how in MORPHEMES.items()
    ),
    Arm("gold", "treebank's analyses of all words, suffixes", SUFFIXES, ALL),
)
ARMS = (
    *PLAIN,
    *(
        replace(
            arm, name=f"{arm.name}-{added}", what=f"{arm.what}, {' '.join(('tuned', *more))}", training=TUNED + more
        )
        for arm in PLAIN
        if arm.name in ("softmax", "softmax-unigram", "guess")
        for added, more in (REGULARISED if arm.name == "guess" else REGULARISED | GRID).items()
    ),
)


def losses(scored: str, train_words: frozenset[str]) -> dict[str, float]:
    """Return perplexity, and mean losses of seen words (with </s>) and unseen words, from fairseq-eval-lm's output."""
    seen: list[float] = []
    unseen: list[float] = []
    for line in scored.splitlines():
        for word, log_prob in SCORED.findall(line):
            (seen if word in train_words or word == "</s>" else unseen).append(-float(log_prob))
    if not seen:
        raise DataError("expected log-probabilities from fairseq-eval-lm --output-word-probs, found none")
    return {
        "perplexity": math.exp(math.fsum(seen + unseen) / len(seen + unseen)),
        "seen": math.fsum(seen) / len(seen),
        "unseen": math.fsum(unseen) / len(unseen) if unseen else math.nan,
        "tokens": len(seen + unseen),
    }


def validated(log: str) -> tuple[int, float]:
    """Return the number of epochs, and the perplexity of checkpoint_best.pt: the least loss, the last of equal ones.

    The loss includes the penalties of an arm.
    """
    epochs = [(float(loss), float(perplexity)) for loss, perplexity in VALID.findall(log)]
    if not epochs:
        raise DataError("expected perplexities on the validation text from fairseq-train, found none")
    return len(epochs), min(reversed(epochs), key=itemgetter(0))[1]


def run(arm: Arm, seed: int, ud: Path, out: Path, extra: Sequence[str] = ()) -> None:
    """Build the prior, train, measure."""
    place = out / "models" / f"{arm.name}-{seed}"
    result = place / "result.json"
    if result.exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    log = place / "train.log"
    log.unlink(missing_ok=True)
    if arm.prior is not None:
        execute(arm.prior_command(ud, out, place / "prior"), log)
    try:
        epochs, valid = validated(execute(arm.train_command(out, place, seed, extra), log))
    except DataError as error:
        raise DataError(f"{log}: {error}") from None
    train_words = frozenset((out / "text" / "train.txt").read_text(encoding="utf-8").split())
    test = losses(execute(arm.score_command(out, place), place / "test.log"), train_words)
    measured = {"arm": arm.name, "seed": seed, "epochs": epochs, "validation": valid, **test}
    result.write_text(json.dumps(measured) + "\n", encoding="utf-8")
    print(f"{arm.name}-{seed}: perplexity {valid:.1f}, of the test text {test['perplexity']:.1f}", flush=True)


def results(out: Path) -> dict[str, list[dict[str, float]]]:
    """Return the results of the runs of each arm."""
    found = defaultdict(list)
    for path in sorted((out / "models").glob("*/result.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        found[result["arm"]].append(result)
    return found


def table(out: Path) -> str:
    """Return Markdown: mean over seeds, and the range of several."""
    head = ("", "seeds", "validation", "test perplexity", "unseen words, nats", "seen words, nats")
    rows = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    measured = results(out)
    for arm in ARMS:
        runs = measured.get(arm.name, [])
        if runs:
            columns = (("validation", 0), ("perplexity", 0), ("unseen", 2), ("seen", 2))
            cells = [_mean(runs, name, digits) for name, digits in columns]
            rows.append(f"| {' | '.join([arm.what, str(len(runs)), *cells])} |")
    return "\n".join(rows)


def _mean(runs: Sequence[dict[str, float]], name: str, digits: int) -> str:
    values = [run[name] for run in runs]
    shown = f"{sum(values) / len(values):,.{digits}f}"
    return shown if len(values) == 1 else f"{shown} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def chosen(names: Sequence[str]) -> Iterator[Arm]:
    known = {arm.name: arm for arm in ARMS}
    for name in names or known:
        if name not in known:
            raise OptionError(f"there is no arm {name!r}; there are: {', '.join(known)}")
        yield known[name]


@one_line_errors("small_treebanks.py")
def main() -> None:
    parser = argparse.ArgumentParser(description="language models of a small treebank")
    parser.add_argument("action", choices=("train", "table", "commands"))
    parser.add_argument("arms", nargs="*", metavar="ARM", help=", ".join(arm.name for arm in ARMS) + " (default: all)")
    parser.add_argument("--ud", type=Path, default=Path("UD"), help="the folder given to small_texts.py")
    parser.add_argument("--out", type=Path, required=True, help="what small_texts.py wrote")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    args = parser.parse_intermixed_args()  # arms may come after options
    arms = list(chosen(args.arms))
    for seed in args.seeds if args.action == "train" else ():
        for arm in arms:
            run(arm, seed, args.ud, args.out)
    for arm in arms if args.action == "commands" else ():
        place = args.out / "models" / f"{arm.name}-{args.seeds[0]}"
        prior = [] if arm.prior is None else [arm.prior_command(args.ud, args.out, place / "prior")]
        train, score = arm.train_command(args.out, place, args.seeds[0]), arm.score_command(args.out, place)
        print("\n".join(shlex.join(command) for command in (*prior, train, score)))
    if args.action == "table":
        print(table(args.out))


if __name__ == "__main__":
    raise SystemExit(main())
