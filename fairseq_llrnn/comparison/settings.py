"""The choices of a comparison.

All neural models of words have the same number of trials: the first `tries` of TRIALS. Pieces have as many for each of
their sizes. The rate was chosen on the validation text of UD_North_Sami-Giella (one seed). With 0.004, falling after 2
epochs without progress, the softmax, pieces and ours needed 2 to 3 % fewer bits than with a rate of 0.002.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, NamedTuple

from annotated_types import Ge, Le

from fairseq_llrnn.errors import DataError, OptionError, need_library
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.lexicon.casing import LITHUANIAN, TURKIC, language_of
from fairseq_llrnn.lexicon.languages.names import CODES
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import SOURCES
from fairseq_llrnn.prior.recipe import OpenOptions
from fairseq_llrnn.settings import OneOf, PathsOrNames, Settings, check_files

MODELS = {  # name for --models -> title
    "ngrams": "Kneser-Ney n-grams of orders 2 to 5",
    "softmax": "softmax",
    "softmax-unigram": "softmax over the unigram",
    "pieces": "softmax of BPE pieces",
    "characters": "softmax of characters",
    "suffixes": "ours, suffixes",
    "lexicon": "ours, suffixes and lexicon",
    "pretrained": "the network of --pretrained, fine-tuned with its own tokenizer",
    "mixed": "the best softmax over words, those over pieces and characters, and the best of ours, each mixed with "
    "n-grams; all models mixed, without and with ours",
}
OF_PIECES = ("pieces", "characters")
SOFTMAX, OURS = ("softmax", "softmax-unigram"), ("suffixes", "lexicon")  # over words
NEURAL = (*SOFTMAX, *OF_PIECES, *OURS)
MIXED = {  # rows -> models, the best of which is mixed with n-grams
    "mixed-softmax": SOFTMAX,
    **{f"mixed-{model}": (model,) for model in OF_PIECES},
    "mixed-ours": OURS,
}
WITH_OURS = (*OURS, "mixed-ours")  # rows
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "*.safetensors"  # in a folder of save_pretrained
PRETRAINED_FILES = ("*.json", "*.txt", "*.model", WEIGHTS)  # with all settings and vocabularies
TRIES, QUICK_TRIES = 3, 1
EPOCHS = 200  # few trainings reach it: they stop without progress


class Trial(NamedTuple):
    """Values of a training that are chosen on the validation text."""

    dropout: float
    width: int
    rate: float

    @property
    def name(self) -> str:
        """The name of the trial's folder."""
        return f"dropout{self.dropout}-width{self.width}-rate{self.rate}"


class FineTuning(NamedTuple):
    """Values of a fine-tuning that are chosen on the validation text."""

    rate: float

    @property
    def name(self) -> str:
        """The name of the trial's folder."""
        return f"rate{self.rate}"


TRIALS = (
    Trial(0.4, 256, 0.004),
    Trial(0.6, 256, 0.004),
    Trial(0.5, 384, 0.003),
    Trial(0.3, 256, 0.004),
    Trial(0.5, 256, 0.008),
    Trial(0.6, 512, 0.002),
)
RATES = (0.0003, 0.0001, 0.0006, 0.00005, 0.001, 0.00003)  # of fine-tuning


@dataclass(frozen=True)
class Comparison(Settings):
    """The choices of a comparison. Arguments of `fairseq_llrnn.compare` and options of `llrnn compare`."""

    out: Path
    folder: Path | None = None  # of a UD treebank
    train: Path | None = None  # texts or treebanks, instead of a folder
    valid: Path | None = None
    test: Path | None = None
    words: LexiconOptions = field(default_factory=LexiconOptions)  # sources of features, and the spelling of the text
    lower: str | None = None  # None: keep the case; "": lower-case without a language
    models: tuple[Annotated[str, OneOf(lambda: MODELS)], ...] | None = None  # None: all that are possible
    tries: Annotated[int, Ge(1), Le(len(TRIALS))] | None = None
    seeds: tuple[Annotated[int, Ge(0)], ...] = (1,)
    pretrained: Path | None = None  # folder of a causal network of transformers
    closed: bool = False  # whether word models are also trained over a closed dictionary
    quick: bool = False
    max_epoch: Annotated[int, Ge(1)] | None = None
    jobs: Annotated[int, Ge(1)] = 1
    spelling_lexicon: PathsOrNames = ()  # lists and dictionaries that spell unknown words of all word models
    name_of: Callable[[str], str] = str  # an argument, or words.KEY -> its name in messages

    @property
    def sources(self) -> LexiconOptions:
        """The sources of word features, for words in the case of the texts."""
        return replace(self.words, keep_case=self.lower is None, lower=self.lower or None)

    @property
    def open_vocabulary(self) -> OpenOptions:
        """The open vocabulary of all word models."""
        return OpenOptions(lexicon=as_paths(self.spelling_lexicon))

    @property
    def has_features(self) -> bool:
        """Whether a source has features of words. Some have lemmas alone."""
        named = [name for name, source in SOURCES.items() if source.has_features and getattr(self.words, name)]
        return bool(named or self.words.language or self.words.morphemes)

    @property
    def may_have_pieces(self) -> bool:
        """Whether pieces or characters are among the models."""
        return self.models is None or not {*OF_PIECES}.isdisjoint(self.models)

    @property
    def num_tries(self) -> int:
        """The number of trials of each neural model."""
        return self.tries if self.tries is not None else QUICK_TRIES if self.quick else TRIES

    @property
    def epochs(self) -> int:
        """The largest number of epochs."""
        return EPOCHS if self.max_epoch is None else self.max_epoch

    def check(self, option_name: Callable[[str], str] = str) -> None:
        """Check the choices before any text is read.

        Raises:
            OptionError: choices that exclude each other, or lack another one.
            DataError: a source of features is missing.
        """
        name = option_name
        if not self._is_known_language():
            raise OptionError(
                f"{name('lower')} {self.lower}: expected the code of a language, such as tr, az or lt, found no known "
                f"one; leave it empty for all languages but these three, and write {name('folder')} before it"
            )
        if (self.folder is None) == (self.train is None):
            found = "both" if self.train is not None else "neither"
            raise OptionError(
                f"expected {name('folder')}, the folder of a treebank, or {name('train')} and {name('test')} with "
                f"files, found {found}; give one of them"
            )
        if self.folder is not None and (self.valid or self.test):
            raise OptionError(
                f"{name('valid')} and {name('test')} need {name('train')}; remove them, or give {name('train')} "
                f"instead of {name('folder')}"
            )
        if self.train is not None and self.test is None:
            raise OptionError(f"{name('train')} needs {name('test')}, the text of the table; add it")

        def name_of_source(key: str) -> str:
            return name(f"words.{key}")

        self.sources.check(name_of_source)
        check_files(self.sources, name_of_source)
        self.open_vocabulary.check(lambda key: name(f"spelling_{key}"))
        if self.models is not None:
            _check_models(name("models"), self.models)
            if "pretrained" in self.models and self.pretrained is None:
                raise OptionError(f"{name('models')} pretrained: it needs {name('pretrained')}, a folder; add that")
        if len(set(self.seeds)) < max(1, len(self.seeds)):
            found = " ".join(map(str, self.seeds)) or "none"
            raise OptionError(f"{name('seeds')}: expected different numbers, found {found}; correct them")
        if self.pretrained is not None:
            need_library(name("pretrained"), "transformers", "hf")
            _check_pretrained(name("pretrained"), self.pretrained)

    def _is_known_language(self) -> bool:
        """Return whether `lower` is empty, or the code of a known language."""
        try:
            code = language_of(self.lower)
        except OptionError:
            return False
        return code is None or code in (*TURKIC, *LITHUANIAN, *CODES)


def _check_pretrained(option: str, folder: Path) -> None:
    """Raise DataError for a folder without a network and a fast tokenizer of save_pretrained."""
    lacking = [name for name in (CONFIG, TOKENIZER) if not (folder / name).is_file()]
    if lacking or not weights_of(folder):
        found = "no such folder" if not folder.is_dir() else f"no {lacking[0]}" if lacking else "no *.safetensors"
        raise DataError(
            f"{option} {folder}: expected a folder of save_pretrained with {CONFIG}, {TOKENIZER} and "
            f"*.safetensors, found {found}; save the model and its tokenizer there"
        )


def weights_of(folder: Path) -> list[Path]:
    """Return the files with the weights of a network of transformers."""
    return sorted(folder.glob(WEIGHTS))


def _check_models(option: str, models: Sequence[str]) -> None:
    """Raise OptionError for no names, or mixtures without their parts."""
    if not models:
        raise OptionError(f"{option}: expected names, found none; choose from {', '.join(MODELS)}")
    if "mixed" in models and not ("ngrams" in models and set(models) & set(NEURAL)):
        raise OptionError(f"{option} mixed: it needs ngrams and a model to mix, such as suffixes; add them")
