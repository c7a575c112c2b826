"""The table's rows: five networks, each with two outputs, and their command-line options.

Every path is relative to the folder OUT:

    text/{train,valid,test}.{en,fr}      the first pairs of Multi30k, tokens, lower-cased
    data/                                of fairseq-preprocess, with the priors softmax/ and ours/ in it
    rows/NAME[-lrX]/                     checkpoint_best.pt, facts.json, test.out, test.fr, log
    phrases/                             table.gz, pairs.{en,fr}, data/, ROW/, scored-…gz, …
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import fairseq_llrnn
from fairseq_llrnn.errors import OptionError

USER_DIR = str(Path(fairseq_llrnn.__file__).parent)
SPLITS = {"train": "train", "valid": "val", "test": "test2016"}  # as Multi30k's files call them
PAIRS = 10_000

# Outputs -> what `llrnn prior` is told.
PRIORS = {
    "softmax": "--dict data/dict.fr.txt --softmax",
    "ours": (
        "--dict data/dict.fr.txt --count-text text/train.fr --lexicon lexicon.tsv.gz --shapes --suffixes 20 "
        "--background unigram --lexical-translation data --set translations.aligner=ibm1"
    ),
}

TRAINING = (
    "--criterion log_linear --report-group none --optimizer adam --adam-betas (0.9,0.98) --clip-norm 1.0 "
    "--max-tokens 700 --dropout 0.2 --lr-scheduler polynomial_decay --warmup-updates 50 --end-learning-rate 0 "
    "--required-batch-size-multiple 1 --num-workers 0 --cpu --seed 1 --validate-interval 1000 --save-interval 1000 "
    "--no-epoch-checkpoints --log-format simple --log-interval 100"
)
CHECKS = 10  # times that a training looks at the validation set; the best checkpoint is measured
SEARCH = "--beam 5 --nbest 5 --lenpen 1 --max-len-b 40"
BEST = "checkpoint_best.pt"
SIZES = "--encoder-embed-dim 128 --decoder-embed-dim 128 --decoder-hidden-size 128"


@dataclass(frozen=True)
class Network:
    """A model of the table."""

    title: str
    options: str
    updates: dict[str, int]  # of each output: about 300 s of processor time
    lr: float = 0.003


NETWORKS = {
    "rctm": Network(
        "RCTM I: convolutions to one vector, Elman's cell", f"--arch llrnn_rctm {SIZES}",
        {"softmax": 3750, "ours": 6300},
    ),
    "rctm2": Network(
        "RCTM II: n-grams, unfolded over the target",
        f"--arch llrnn_rctm --source-model cgm {SIZES}", {"softmax": 3300, "ours": 5850},
    ),
    "encoder-decoder": Network(
        "encoder-decoder: GRU, the summary at every step, maxout",
        "--arch llrnn_encoder_decoder --encoder-hidden-size 128 --decoder-hidden-size 128 --maxout-units 128",
        {"softmax": 2850, "ours": 3450},
    ),
    "seq2seq": Network(
        "seq2seq: two layers of LSTMs, source reversed",
        f"--arch llrnn_seq2seq --encoder-layers 2 --decoder-layers 2 --encoder-hidden-size 128 {SIZES}",
        {"softmax": 3150, "ours": 3900},
    ),
    "rnnsearch": Network(
        "RNNsearch: GRU, attention", f"--arch llrnn_rnnsearch --encoder-hidden-size 128 {SIZES}",
        {"softmax": 2640, "ours": 3150},
    ),
}  # fmt: skip
PHRASES = {"encoder-decoder-softmax": 1000, "encoder-decoder-ours": 1200}  # rows that learn phrase pairs: updates
LONGEST = 4  # words of a phrase
ROWS = [f"{network}-{output}" for network in NETWORKS for output in PRIORS]


def find(name: str) -> tuple[Network, str]:
    """Return a row's network, and its output. Raises OptionError."""
    network, _, output = name.rpartition("-")
    if network not in NETWORKS or output not in PRIORS:
        raise OptionError(f"{name}: expected a row, {', '.join(ROWS)}; found another name")
    return NETWORKS[network], output


def task(output: str, data: str = "data") -> list[str]:
    """Return options of every command of fairseq."""
    return [data, "--user-dir", USER_DIR, "--task", "llrnn_translation", "--prior", f"data/{output}"]


def train(name: str, folder: str, updates: int, lr: float) -> Sequence[str]:
    """Return the fairseq-train options of a row."""
    step = str(max(1, updates // CHECKS))
    checks = ["--validate-interval-updates", step, "--save-interval-updates", step, "--keep-interval-updates", "1"]
    return [*_training(name, folder, updates, "data", lr), *checks]


def train_on_phrases(name: str, folder: str, updates: int, data: str) -> Sequence[str]:
    """Return the fairseq-train options of a row's network that learns phrase pairs, without a validation set."""
    return [*_training(name, folder, updates, data, find(name)[0].lr), "--disable-validation"]


def _training(name: str, folder: str, updates: int, data: str, lr: float) -> list[str]:
    network, output = find(name)
    limits = ["--max-update", str(updates), "--total-num-update", str(updates), "--lr", str(lr)]
    return [*task(output, data), *network.options.split(), *TRAINING.split(), *limits, "--save-dir", folder]


def searching(name: str, folder: str) -> Sequence[str]:
    """Return options of fairseq-validate and fairseq-generate."""
    common = [*task(find(name)[1]), "--path", f"{folder}/{BEST}", "--max-tokens", "4000", "--cpu"]
    return [*common, "--required-batch-size-multiple", "1", "--num-workers", "0"]
