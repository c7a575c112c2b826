"""The rows of the table: units, priors, networks, and the command lines of each.

To add a row, add a line to ROWS. A row of ours consists of options of `llrnn prior` and of fairseq-train.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from example_parts.text_units import as_characters, character_symbols, lines_of, write_dictionary
from language_texts import SPLITS, Language, analysed

from fairseq_llrnn.comparison.pieces import Pieces
from fairseq_llrnn.errors import OptionError

BUDGET = 150.0  # seconds of one core for a training
UPDATES = 150  # of an epoch, where the batches need not be tiny for it
MODEL = "pieces.model"  # of the row's pieces
RARE_WORD, RARE_CHARACTER = 2, 3  # what occurs less often is <unk>, of `unk` and of characters

RECIPE = (
    *("--criterion", "log_linear", "--optimizer", "adam", "--clip-norm", "1.0", "--lr-scheduler", "fixed"),
    *("--sample-break-mode", "eos", "--required-batch-size-multiple", "1", "--bf16-products", "--tie-features"),
)
HOUSEHOLD = ("--cpu", "--num-workers", "0", "--no-epoch-checkpoints", "--log-format", "simple", "--log-interval", "50")


@dataclass(frozen=True)
class Row:
    """One system, in all languages."""

    name: str
    group: str  # of GROUPS in language_table.py; `tuning`: no row of the table
    what: str
    units: str  # open, unk, pieces, characters
    speed: float  # tokens per second of processor time, from which the number of epochs follows
    prior: tuple[str, ...] = ()  # options of llrnn prior; {treebanks}, {code}: of the language
    more_words: int = 0  # the most frequent ones of wordfreq that the training text lacks, in the dictionary, too
    training: tuple[str, ...] = ()  # options of fairseq-train
    pieces: int = 0
    width: int = 256
    layers: int = 2
    lr: float = 0.004
    dropout: float = 0.4
    batch: int = 1024  # tokens, at most
    most_epochs: int = 12
    times: float = 1.0  # the budget, for rows that are trained to their end
    network: str = ""  # a row whose network is mixed with n-grams (language_mixtures.py); nothing is trained
    ngrams: bool = False  # n-grams of words alone

    @property
    def needs(self) -> set[str]:
        """What the row needs for a language: `treebanks`, `frequencies` (wordfreq), `code` (any package)."""
        needed = {name for name in ("treebanks", "code") if f"{{{name}}}" in self.prior}
        return needed | ({"frequencies"} if self.more_words or FREQUENCIES[-1] in self.prior else set())


SURFACE = ("--suffixes", "--shapes", "--set", "words.keep_case=true")
OPEN = (*SURFACE, "--open-vocabulary", "characters")
NEURAL = (*SURFACE, "--open-vocabulary", "neural")
NGRAM = ("--background", "ngram(3, temperature=3)")
MORPHEMES = ("--set", "words.morphemes=morfessor")
LANGUAGE = ("--language", "{code}")
FREQUENCIES = (*LANGUAGE, "--background", "unigram plus language with weights learned")
TREEBANK = ("--conllu", "{treebanks}")


def _pieces(size: int) -> Row:
    what = f"BPE softmax, {size:,} pieces"
    return Row(f"bpe-{size}", "a", what, "pieces", 16_000, pieces=size, batch=1536, most_epochs=30)


CHARACTERS = Row(
    *("characters", "b", "character LSTM", "characters", 14_000), width=512, layers=1, batch=6144, most_epochs=30
)
UNK = Row("unk", "c", "word softmax, `<unk>` spelled", "unk", 8_000)  # by the character model of `spelling`
NGRAMS = Row(
    *("ngrams", "n", "word n-grams, unknown words spelled", "open", 1),
    ("--open-vocabulary", "characters", "--set", "words.keep_case=true"),
    ngrams=True,
)
SPELLING = Row("spelling", "d", "ours: spelling", "open", 13_000, OPEN)
TRIGRAMS = Row(
    *("ngram", "d", "ours: spelling, trigrams below", "open", 12_000, (*OPEN, *NGRAM)),
    training=("--learn-background-temperature",),
)
SPELLER = Row("neural", "d", "ours: spelling, unknown words by a network", "open", 8_000, NEURAL)
SPELLER_TRIGRAMS = Row(
    *("neural-ngram", "d", "ours: spelling, unknown words by a network, trigrams below", "open", 8_000),
    (*NEURAL, *NGRAM),
    training=TRIGRAMS.training,
)


def _to_the_end(row: Row) -> Row:
    epochs = max(row.most_epochs, 20)
    return replace(row, name=f"{row.name}-long", what=f"{row.what}, to the end", times=8.0, most_epochs=epochs)


def _mixed(row: Row) -> Row:
    """Return the mixture of a trained row. Its `prior` is that of the n-grams, without trigrams of its own."""
    without = row.prior[: -len(NGRAM)] if row.prior[-len(NGRAM) :] == NGRAM else row.prior
    what = f"{row.what}, n-grams mixed in"
    return replace(row, name=f"{row.name}-mixed", what=what, network=row.name, prior=without)


def _tuning() -> list[Row]:
    """Return other dropout rates and numbers of epochs for the best rows of both sides; not in the table."""
    tried = []
    for row in map(_to_the_end, (_pieces(2000), UNK, SPELLER, SPELLER_TRIGRAMS)):
        row = replace(row, group="tuning")
        for dropout in (0.1, 0.2, 0.3, 0.5, 0.6):
            name, what = f"{row.name}-dropout{dropout}", f"{row.what}, dropout {dropout}"
            tried.append(replace(row, name=name, what=what, dropout=dropout))
        for epochs in (8, 12, 20, 40):
            if epochs != row.most_epochs:
                name, what = f"{row.name}-epochs{epochs}", f"{row.what}, {epochs} epochs"
                tried.append(replace(row, name=name, what=what, most_epochs=epochs, times=2.0 * row.times))
    return tried


ROWS = {
    row.name: row
    for row in (
        *(_pieces(size) for size in (500, 1000, 2000, 4000)),
        CHARACTERS,
        SPELLING,
        UNK,
        NGRAMS,
        TRIGRAMS,
        SPELLER,
        SPELLER_TRIGRAMS,
        *map(_to_the_end, (*map(_pieces, (1000, 2000, 4000)), CHARACTERS, UNK)),
        *map(_to_the_end, (SPELLING, TRIGRAMS, SPELLER, SPELLER_TRIGRAMS)),
        *map(_mixed, (_pieces(1000), _pieces(2000), UNK, SPELLING)),
        *map(_mixed, map(_to_the_end, (_pieces(1000), _pieces(2000), UNK, SPELLING, SPELLER, SPELLER_TRIGRAMS))),
        Row("morphemes", "e", "ours: spelling, morphemes", "open", 12_000, (*OPEN, *MORPHEMES)),
        Row(
            *("input-characters", "f", "ours: spelling, words read by their characters, too", "open", 8_000, OPEN),
            training=("--input-characters", "cnn", "--character-mode", "add"),
        ),
        Row("language", "g", "ours: spelling, `--language`", "open", 12_000, (*OPEN, *LANGUAGE)),
        Row("frequencies", "g", "ours: spelling, `--language` with frequencies", "open", 12_000, (*OPEN, *FREQUENCIES)),
        Row(
            *("words", "g", "ours: the same, 20,000 more words", "open", 11_000, (*OPEN, *FREQUENCIES)),
            more_words=20_000,
        ),
        Row("treebank", "h", "ours: spelling, treebank", "open", 13_000, (*OPEN, *TREEBANK)),
        Row(
            *("all", "h", "ours: treebank, `--language` with frequencies, 20,000 more words", "open", 11_000),
            (*OPEN, *TREEBANK, *FREQUENCIES),
            more_words=20_000,
        ),
        *_tuning(),
        *map(_mixed, _tuning()),
    )
}


def chosen(names: Sequence[str]) -> list[Row]:
    """Return the rows of these names or groups, or all of the table without names. Raises OptionError."""
    groups = {row.group for row in ROWS.values()}
    for name in names:
        if name not in ROWS and name not in groups:
            raise OptionError(f"there is no row {name!r}; there are: {', '.join(ROWS)}; groups: {', '.join(groups)}")
    if not names:
        return [row for row in ROWS.values() if row.group != "tuning"]
    return [row for row in ROWS.values() if row.name in names or row.group in names]


def fits(row: Row, language: Language) -> bool:
    """Return whether the language has what the row needs."""
    has = {"treebanks": bool(language.treebanks), "code": language.packages, "frequencies": language.frequencies}
    return all(has[need] for need in row.needs)


def unit_writer(row: Row, place: Path) -> Callable[[str], str]:
    """Return a function that converts a line to the row's units."""
    if row.units == "pieces":
        return Pieces(place / MODEL).write
    return as_characters if row.units == "characters" else str


def more_words(code: str, many: int, known: AbstractSet[str]) -> list[str]:
    """Return the most frequent words of wordfreq's list that are not known."""
    if not many:
        return []
    try:
        from wordfreq import top_n_list
    except ImportError as error:
        raise OptionError(
            "wordfreq: expected the package for a row of more words, found none; pip install '.[languages]'"
        ) from error
    listed = (word for word in top_n_list(code, many + len(known)) if word not in known and " " not in word)
    return list(islice(listed, many))


def write_units(row: Row, language: Language, text: Path, place: Path) -> None:
    """Write the texts of a row, in its units, and its dict.txt.

    Args:
        text: the folder of the language's texts.
        place: the folder of the row.
    """
    place.mkdir(parents=True, exist_ok=True)
    lines = {split: lines_of(text / f"{split}.txt") for split in SPLITS}
    least = {"characters": RARE_CHARACTER, "unk": RARE_WORD}.get(row.units, 1)
    if row.units == "characters":
        counts = character_symbols(lines["train"])
    elif row.units == "pieces":
        counts = Pieces.train(text / "train.txt", place / MODEL, row.pieces).symbols(lines["train"])
    else:
        counts = Counter(word for line in lines["train"] for word in line.split())
    write = unit_writer(row, place)
    for split, own in lines.items():
        (place / f"{split}.txt").write_text("".join(write(line) + "\n" for line in own), encoding="utf-8")
    kept = {symbol: count for symbol, count in counts.items() if count >= least}
    more = more_words(language.code, row.more_words, kept.keys())
    write_dictionary(place / "dict.txt", Counter(kept | dict.fromkeys(more, 0)))


def epochs_of(row: Row, tokens: int, budget: float) -> int:
    """Return the number of epochs within the budget of processor time."""
    return max(1, min(row.most_epochs, math.floor(row.times * budget * row.speed / tokens)))


def batch_of(row: Row, tokens: int) -> int:
    """Return the tokens of a batch: fewer for a small text, so that an epoch has many updates."""
    return max(row.batch // 3, min(row.batch, tokens // UPDATES))


def falling(lr: float, epochs: int) -> str:
    """Return the learning rate of each epoch: from `lr` in equal steps to a small one in the last."""
    return ",".join(f"{lr * (1 - epoch / epochs):.6f}" for epoch in range(epochs))


def commands(
    row: Row, language: Language, data: Path, place: Path, user_dir: str, seed: int, budget: float
) -> list[tuple[str, ...]]:
    """Return the commands for the data, the prior and the model. The texts are those of `write_units`."""
    binary = place / "data-bin"
    prior: tuple[str, ...] = ("--softmax",)
    if row.units == "open":
        known = {"{treebanks}": analysed(language, data), "{code}": [language.code]}
        given = (part for option in row.prior for part in known.get(option, [option]))
        prior = ("--count-text", str(place / "train.txt"), *given)
    tokens = sum(line.count(" ") + 2 for line in (place / "train.txt").read_text(encoding="utf-8").splitlines())
    epochs = epochs_of(row, tokens, budget)
    longest = max(line.count(" ") + 2 for s in SPLITS for line in (place / f"{s}.txt").read_text("utf-8").splitlines())
    batch = max(batch_of(row, tokens), longest)
    return [
        (
            *("fairseq-preprocess", "--only-source", "--workers", "1", "--srcdict", str(place / "dict.txt")),
            *("--trainpref", str(place / "train.txt"), "--validpref", str(place / "valid.txt")),
            *("--destdir", str(binary)),
        ),
        ("llrnn", "prior", "--dict", str(place / "dict.txt"), "--out", str(binary / "prior"), *prior),
        (
            *("fairseq-train", str(binary), "--user-dir", user_dir, "--task", "llrnn_language_modeling"),
            *("--arch", "llrnn_lm", "--decoder-layers", str(row.layers), *RECIPE, "--dropout", str(row.dropout)),
            *("--decoder-embed-dim", str(row.width), "--decoder-hidden-size", str(row.width)),
            *("--lr", falling(row.lr, epochs), "--max-epoch", str(epochs), "--tokens-per-sample", str(longest)),
            *("--max-tokens", str(batch), "--seed", str(seed), "--save-dir", str(place / "model")),
            *HOUSEHOLD,
            *row.training,
        ),
    ]


def score_command(row: Row, place: Path, ngrams: Path | None = None) -> list[str]:
    """Return the `llrnn score` command for a text in the row's units on stdin, by the prior `ngrams` if given."""
    spelt = ["--open"] if row.units == "open" else []
    scorer = ["--prior", str(ngrams)] if ngrams else ["--path", str(place / "model" / "checkpoint_best.pt")]
    return ["llrnn", "score", *scorer, "--json", *spelt]
