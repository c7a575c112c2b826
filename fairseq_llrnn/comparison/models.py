"""The models of a comparison: their units, their priors, and the options of their trainings.

All models give a probability to every string. Word models have an open vocabulary (prior/parts/open_vocabulary.py):
character n-grams spell unknown words, in networks together with a network of characters that sees the context
(open_vocabulary/speller.py). Training reads the same share of rare words as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairseq_llrnn import defaults
from fairseq_llrnn.comparison.pieces import CHARACTERS
from fairseq_llrnn.comparison.settings import (
    MODELS,
    OURS,
    RATES,
    TRIALS,
    Comparison,
    FineTuning,
    Trial,
    weights_of,
)
from fairseq_llrnn.comparison.texts import Texts
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.spelling_features import DEFAULT_SUFFIX_FLOOR
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.recipe import Recipe

ORDERS = (2, 3, 4, 5)  # of n-grams over words
PIECE_ORDERS = (3, 5, 7)  # of n-grams over pieces and characters, for mixtures
PIECE_SIZES = (500, 2000)
CHARACTERS_PER_PIECE = {CHARACTERS: 1.0, 500: 1.9, 2000: 3.6}
QUICK_SIZES = (500,)
# Least updates without improvement before a training stops, and before the learning rate falls. Without them, small
# texts with few batches would stop during the plateau that most trainings have at their beginning.
UPDATES, RATE_UPDATES = 100, 20

# for estimates
START = 5.0  # seconds of a job before and after its training
WORDS_PER_ROW = 8  # of our output layer, whose rows are shared
WEIGHTS_PER_SECOND = 1.2e10  # of a training on a core: weights times tokens
EPOCHS = {"softmax": 19, "softmax-unigram": 19, "pieces": 45, "characters": 60, "suffixes": 28, "lexicon": 28}
SPELLED = 1.3  # seconds of a training that also spells, relative to one that does not
PASSES = 4  # epochs of a fine-tuning
PRETRAINED_PER_SECOND = 3.5e9  # weights times words
SMALL_FILES = 5_000_000  # bytes of texts, priors and results of a job
BYTES_PER_WEIGHT = 12  # with two averages of the optimiser


@dataclass(frozen=True)
class Job:
    """One model with one setting and one seed."""

    model: str  # a name of MODELS, `ngrams-N`, or `pretrained-NAME`
    seed: int
    trial: Trial | FineTuning | None = None  # None: nothing is trained
    size: int | None = None  # of pieces, or CHARACTERS
    weights: int = 0  # of a pretrained network
    is_closed: bool = False  # whether the dictionary has the words of all texts, and no other words are possible
    inputs: str = ""  # a digest of what it is made from, apart from the texts (inputs.py)

    @property
    def setting(self) -> str:
        """The name of the setting that the validation text chooses."""
        words = [] if self.trial is None else [self.trial.name]
        words += [] if self.size is None else ["characters" if self.size == CHARACTERS else f"{self.size}pieces"]
        return "-".join(words) or "fixed"

    @property
    def place(self) -> Path:
        """The folder of the job below the output folder."""
        spelling = "-closed" if self.is_closed else "-spelled" if self.has_speller else ""
        inputs = f"-{self.inputs}" if self.inputs else ""
        return Path("models") / f"{self.model}{inputs}" / f"{self.setting}{spelling}-seed{self.seed}"

    @property
    def has_words(self) -> bool:
        """Whether its units are words."""
        return self.size is None and not isinstance(self.trial, FineTuning)

    @property
    def has_speller(self) -> bool:
        """Whether a network spells unknown words."""
        return self.has_words and self.trial is not None and not self.is_closed

    def num_weights(self, texts: Texts) -> int:
        """Return an estimate of the number of weights: tied embeddings and an LSTM, or those pretrained."""
        if not isinstance(self.trial, Trial):
            return self.weights
        rows = self.size or (texts.num_words // WORDS_PER_ROW if self.model in OURS else texts.num_words)
        return rows * self.trial.width + 16 * self.trial.width**2

    def seconds(self, texts: Texts, epochs: int) -> float:
        """Return an estimate of the job's seconds on one core. epochs: the most."""
        weights, units = self.num_weights(texts), float(texts.num_tokens)
        if not isinstance(self.trial, Trial):
            return START + units * PASSES * weights / PRETRAINED_PER_SECOND
        if self.size is not None:
            units = max(units, texts.num_characters / CHARACTERS_PER_PIECE[self.size])
        units *= SPELLED if self.has_speller else 1
        return START + units * min(epochs, EPOCHS[self.model]) * weights / WEIGHTS_PER_SECOND

    def bytes(self, texts: Texts) -> int:
        """Return an estimate of the space on disk for a checkpoint."""
        each = BYTES_PER_WEIGHT if isinstance(self.trial, Trial) else 4
        return SMALL_FILES + each * self.num_weights(texts)


def chosen_models(texts: Texts, settings: Comparison) -> list[str]:
    """Return the names of the models. Raises OptionError for a lexicon model without a source of features."""
    has_lexicon = bool(texts.treebanks) or settings.has_features
    impossible = {"lexicon"} if not has_lexicon else set()
    if settings.models is None:
        impossible |= {"pretrained"} if settings.pretrained is None else set()
        return [name for name in MODELS if name not in impossible]
    if "lexicon" in settings.models and not has_lexicon:
        conllu, lexicon, language = (settings.name_of(f"words.{key}") for key in ("conllu", "lexicon", "language"))
        raise OptionError(
            f"{settings.name_of('models')} lexicon: it needs features of words, found no source of them; add {conllu}, "
            f"{lexicon} or {language}"
        )
    added = {"pretrained"} if settings.pretrained is not None else set()
    return [name for name in MODELS if name in {*settings.models, *added}]


def title(model: str) -> str:
    """Return the name of a model in the table."""
    family, _, name = model.partition("-")
    titles = {"ngrams": f"Kneser-Ney {name}-grams", "pretrained": f"{name}, fine-tuned"}
    return titles.get(family) or MODELS[model]


def trials_of(model: str, settings: Comparison, seed: int) -> list[Job]:
    """Return the jobs of a model of MODELS with all its settings. Mixtures have none of their own."""
    if model == "mixed":
        return []
    if model == "ngrams":
        return [Job(f"ngrams-{order}", settings.seeds[0]) for order in ORDERS]
    if model == "pretrained":
        assert settings.pretrained is not None
        folder = settings.pretrained.absolute()
        weights = sum(path.stat().st_size for path in weights_of(folder)) // 4
        rates = map(FineTuning, RATES[: settings.num_tries])
        return [Job(f"pretrained-{folder.name}", seed, rate, weights=weights) for rate in rates]
    of_pieces = {"pieces": QUICK_SIZES if settings.quick else PIECE_SIZES, "characters": (CHARACTERS,)}
    sizes: Sequence[int | None] = of_pieces.get(model, (None,))
    return [Job(model, seed, trial, size) for size in sizes for trial in TRIALS[: settings.num_tries]]


def recipe_of(job: Job, text: Path, texts: Texts, settings: Comparison) -> Recipe:
    """Return the recipe of a model's prior. text: the training text in the model's units."""
    if job.size is not None:
        return replace(Recipe.softmax(), features=())
    sources = settings.sources
    casing = LexiconOptions(keep_case=sources.keep_case, lower=sources.lower)
    spelling = settings.open_vocabulary
    opened = replace(spelling, kind="neural") if job.has_speller else None if job.is_closed else spelling
    words = Recipe(text=str(text), words=casing, open_vocabulary=opened, workers=1)
    if job.model == "softmax":
        return replace(words, top_words="all", background="uniform")
    if job.model == "softmax-unigram":
        return replace(words, top_words="all")
    if job.model.startswith("ngrams-"):
        return replace(words, top_words="all", background=ngrams(int(job.model.removeprefix("ngrams-"))))
    ours = replace(words, suffixes=DEFAULT_SUFFIX_FLOOR, shapes=True)
    return ours if job.model == "suffixes" else replace(ours, words=replace(sources, conllu=texts.treebanks))


def ngrams(order: int) -> str:
    """Return the background of n-grams without cross-fitting, which is only for training."""
    return f"ngram({order}, folds=0)"


def training_options(job: Job, epochs: int, longest: int, num_tokens: int) -> list[str]:
    """Return options of `llrnn train`.

    Args:
        longest: tokens of the longest sentence, with its end. num_tokens: of the training text, with ends.
    """
    assert isinstance(job.trial, Trial)
    dropout, width, rate = job.trial
    batch = max(defaults.SMALL_MAX_TOKENS, longest)
    patience, rate_patience = (
        max(least, math.ceil(updates * batch / num_tokens))
        for least, updates in ((defaults.SMALL_PATIENCE, UPDATES), (defaults.RATE_PATIENCE, RATE_UPDATES))
    )
    return [
        *("--arch", defaults.SMALL_ARCH, "--dropout", str(dropout), "--lr", str(rate), "--seed", str(job.seed)),
        *("--decoder-embed-dim", str(width), "--decoder-hidden-size", str(width), "--max-epoch", str(epochs)),
        *("--bf16-products", "--num-workers", "0", "--log-format", "simple", "--patience", str(patience)),
        *(*defaults.FALLING_RATE.split(), str(rate_patience)),
        *("--max-tokens", str(batch), "--tokens-per-sample", str(max(512, longest))),
    ]
