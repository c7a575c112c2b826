"""The table's rows: five networks, each with two outputs, and what commands are told of them.

Every path is relative to the folder OUT:

    text/{train,valid,test}.{en,fr}      the first pairs of Multi30k, tokens, lower-cased
    data/                                of fairseq-preprocess, with the priors softmax/ and ours/ in it
    rows/NAME/                           checkpoint_last.pt, facts.json, test.out, test.fr, log
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
        "--background unigram --lexical-translation data --aligner ibm1"
    ),
}

TRAINING = (
    "--criterion log_linear --report-group none --optimizer adam --adam-betas (0.9,0.98) --clip-norm 1.0 "
    "--max-tokens 700 --dropout 0.2 --lr-scheduler polynomial_decay --warmup-updates 50 --end-learning-rate 0 "
    "--required-batch-size-multiple 1 --num-workers 0 --cpu --seed 1 --disable-validation --save-interval 1000 "
    "--no-epoch-checkpoints --log-format simple --log-interval 100"
)
SEARCH = "--beam 5 --nbest 5 --lenpen 1 --max-len-b 40"
SIZES = "--encoder-embed-dim 128 --decoder-embed-dim 128 --decoder-hidden-size 128"


@dataclass(frozen=True)
class Network:
    """A model of the table."""

    title: str
    options: str
    lr: float
    updates: dict[str, int]  # of each output: about 100 s of processor time


NETWORKS = {
    "rctm": Network(
        "RCTM I: convolutions to one vector, Elman's cell", f"--arch llrnn_rctm {SIZES}",
        0.003, {"softmax": 1250, "ours": 2100},
    ),
    "rctm2": Network(
        "RCTM II: n-grams, unfolded over the target",
        f"--arch llrnn_rctm --source-model cgm {SIZES}", 0.003, {"softmax": 1100, "ours": 1950},
    ),
    "encoder-decoder": Network(
        "encoder-decoder: GRU, the summary at every step, maxout",
        "--arch llrnn_encoder_decoder --encoder-hidden-size 128 --decoder-hidden-size 128 --maxout-units 128",
        0.003, {"softmax": 950, "ours": 1150},
    ),
    "seq2seq": Network(
        "seq2seq: two layers of LSTMs, source reversed",
        f"--arch llrnn_seq2seq --encoder-layers 2 --decoder-layers 2 --encoder-hidden-size 128 {SIZES}",
        0.003, {"softmax": 1050, "ours": 1300},
    ),
    "rnnsearch": Network(
        "RNNsearch: GRU, attention", f"--arch llrnn_rnnsearch --encoder-hidden-size 128 {SIZES}",
        0.003, {"softmax": 880, "ours": 1050},
    ),
}  # fmt: skip
PHRASES = {"encoder-decoder-softmax": 1000, "encoder-decoder-ours": 1200}  # rows that learn phrase pairs: updates
LONGEST = 4  # words of a phrase
ROWS = [f"{network}-{output}" for network in NETWORKS for output in PRIORS]


def find(name: str) -> tuple[Network, str]:
    """A row's network, and its output. Raises OptionError."""
    network, _, output = name.rpartition("-")
    if network not in NETWORKS or output not in PRIORS:
        raise OptionError(f"{name}: expected a row, {', '.join(ROWS)}; found another name")
    return NETWORKS[network], output


def task(output: str, data: str = "data") -> list[str]:
    """What every command of fairseq is told."""
    return [data, "--user-dir", USER_DIR, "--task", "llrnn_translation", "--prior", f"data/{output}"]


def train(name: str, folder: str, updates: int, data: str = "data") -> Sequence[str]:
    """What fairseq-train is told."""
    network, output = find(name)
    limits = ["--max-update", str(updates), "--total-num-update", str(updates), "--lr", str(network.lr)]
    return [*task(output, data), *network.options.split(), *TRAINING.split(), *limits, "--save-dir", folder]


def searching(name: str, folder: str) -> Sequence[str]:
    """What fairseq-validate and fairseq-generate are told."""
    common = [*task(find(name)[1]), "--path", f"{folder}/checkpoint_last.pt", "--max-tokens", "4000", "--cpu"]
    return [*common, "--required-batch-size-multiple", "1", "--num-workers", "0"]
