"""The compared systems: the units of each, its prior, and the command lines of its training.

All have the same network and recipe, and give a probability to the same lines of text, in different units:

    open        words; every string outside the dictionary by open classes              (llrnn prior --open-vocabulary)
    neural      the same, with a network that also spells open words (--open-vocabulary neural)
    features    subword pieces (BPE) with features: their place in a word, case, suffixes; and a unigram background
    unk         a softmax over words with at least two occurrences; others are <unk>, spelled by one character model
    pieces      a softmax over subword pieces (BPE), with bytes for characters that have none
    characters  a softmax over characters
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from example_parts.text_units import as_characters, character_symbols, lines_of, write_dictionary

from fairseq_llrnn.comparison.pieces import Pieces

SPLITS = ("train", "valid", "test1", "test2")
LEAST_COUNT = 2  # of the words of `unk`

NETWORK = ("--arch", "llrnn_lm", "--decoder-layers", "2", "--tie-features")
RECIPE = (
    *("--criterion", "log_linear", "--optimizer", "adam", "--clip-norm", "1.0"),
    *("--sample-break-mode", "eos", "--required-batch-size-multiple", "1"),
)
ON_A_CPU = ("--cpu", "--bf16-products")
PLATEAU = ("--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.4", "--lr-patience", "0", "--patience", "3")
HOUSEHOLD = ("--num-workers", "0", "--no-epoch-checkpoints", "--log-format", "simple", "--log-interval", "50")


@dataclass(frozen=True)
class Sizes:
    """Settings that a test or a small text reduces."""

    width: int = 256
    epochs: int = 30
    pieces: int = 8000
    top_words: str = "2500"
    open_types: int = 50
    least: int = 1  # the dictionary of `open` has words of this count
    dropout: float = 0.4
    seed: int = 1
    passes: float = 0  # over the text, while the learning rate falls linearly to 0; 0: it falls by the validation loss
    times: int = 1  # as many tokens in a batch as System.batch says
    rate: float = 0.002  # of learning, at first
    gpu: int = 0  # 1: where there is one; products are in float32 then


@dataclass(frozen=True)
class System:
    """One row of the table."""

    name: str
    what: str
    longest: int  # tokens of a line
    batch: int  # tokens


SYSTEMS = {
    "open": System("open", "words, open classes", 512, 1024),
    "neural": System("neural", "words, open classes, spelled by a network as well", 512, 1024),
    "unk": System("unk", "words, <unk>, the same character model", 512, 1024),
    "pieces": System("pieces", "pieces (BPE)", 1024, 1536),
    "features": System("features", "pieces (BPE) with features", 1024, 1536),
    "characters": System("characters", "characters", 4096, 6144),
}
PIECES = ("pieces", "features")
OPEN = {"open": "characters", "neural": "neural"}  # how the systems with an open vocabulary spell


def prepare(name: str, text: Path, place: Path, sizes: Sizes) -> None:
    """Write the texts of a system, in its units, and its dict.txt.

    Args:
        text: the folder of SPLITS, one sentence per line.
        place: the folder of the system.
    """
    place.mkdir(parents=True, exist_ok=True)
    lines = {split: lines_of(text / f"{split}.txt") for split in SPLITS}
    write: Callable[[str], str] = str
    if name == "characters":
        write, counts = as_characters, character_symbols(lines["train"])
    elif name in PIECES:
        pieces = Pieces.train(text / "train.txt", place / "pieces.model", sizes.pieces)
        write, counts = pieces.write, pieces.symbols(lines["train"])
    else:
        counts = Counter(word for line in lines["train"] for word in line.split())
        least = LEAST_COUNT if name == "unk" else sizes.least
        counts = Counter({word: count for word, count in counts.items() if count >= least})
    for split, own in lines.items():
        (place / f"{split}.txt").write_text("".join(write(line) + "\n" for line in own), encoding="utf-8")
    write_dictionary(place / "dict.txt", counts)


def commands(name: str, place: Path, lexicon: Sequence[str], user_dir: str, sizes: Sizes) -> list[list[str]]:
    """Return the commands for the system's data, prior and model.

    Args:
        lexicon: options of `llrnn prior` for features of words, e.g. ("--conllu", "train.conllu").
    """
    data = place / "data-bin"
    known = ["--dict", str(place / "dict.txt"), "--out", str(data / "prior")]
    if name in OPEN:
        prior = [
            *("llrnn", "prior", *known, *lexicon, "--count-text", str(place / "train.txt"), "--shapes", "--suffixes"),
            *("--top-words", sizes.top_words, "--open-vocabulary", OPEN[name]),
            *("--set", f"open_vocabulary.types={str(sizes.open_types)}"),
        ]
    elif name == "features":
        prior = [
            *("llrnn", "prior", *known, "--count-text", str(place / "train.txt"), "--suffixes", "--shapes"),
            *("--pieces", "sentencepiece", "--background", "unigram"),
        ]
    else:
        prior = ["llrnn", "prior", *known, "--softmax"]
    system = SYSTEMS[name]
    return [
        [
            *("fairseq-preprocess", "--only-source", "--workers", "1", "--srcdict", str(place / "dict.txt")),
            *("--trainpref", str(place / "train.txt"), "--validpref", str(place / "valid.txt"), "--destdir", str(data)),
        ],
        prior,
        [
            *("fairseq-train", str(data), "--user-dir", user_dir, "--task", "llrnn_language_modeling", *NETWORK),
            *("--decoder-embed-dim", str(sizes.width), "--decoder-hidden-size", str(sizes.width), *RECIPE),
            *("--tokens-per-sample", str(system.longest), "--max-tokens", str(sizes.times * system.batch)),
            *("--lr", str(sizes.rate), "--dropout", str(sizes.dropout), "--seed", str(sizes.seed)),
            *("--save-dir", str(place / "model"), "--log-file", str(place / "train.log")),
            *schedule(place, system, sizes), *HOUSEHOLD, *(() if sizes.gpu else ON_A_CPU),
        ],
    ]


def schedule(place: Path, system: System, sizes: Sizes) -> list[str]:
    """Return the options of the learning rate, and of the end of training."""
    if not sizes.passes:
        return [*PLATEAU, "--max-epoch", str(sizes.epochs)]
    tokens = sum(1 + len(line.split()) for line in lines_of(place / "train.txt"))
    updates = str(math.ceil(sizes.passes * tokens / (sizes.times * system.batch)))  # batches are nearly full
    epochs = str(math.ceil(sizes.passes) + 1)
    falling = ["--lr-scheduler", "polynomial_decay", "--end-learning-rate", "0", "--warmup-updates", "100"]
    return [*falling, "--total-num-update", updates, "--max-update", updates, "--max-epoch", epochs]


def score_command(name: str, place: Path) -> list[str]:
    """Return the `llrnn score` command for a text in the system's units on stdin."""
    spelt = ["--open"] if name in OPEN else []
    return ["llrnn", "score", "--path", str(place / "model" / "checkpoint_best.pt"), "--json", *spelt]
