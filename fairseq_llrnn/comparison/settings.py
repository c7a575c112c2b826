"""The choices of a comparison.

All neural models of words have the same number of trials: the first `tries` of TRIALS. Pieces have as many for each of
their sizes. The rate was chosen on the validation text of UD_North_Sami-Giella (one seed). With 0.004, falling after 2
epochs without progress, the softmax, pieces and ours needed 2 to 3 % fewer bits than with the rate of `--preset small`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from fairseq_llrnn.errors import DataError, OptionError, check_choice, check_least, need_library
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import SOURCES
from fairseq_llrnn.settings import check_files

MODELS = {  # name for --models -> title
    "ngrams": "Kneser-Ney n-grams of orders 2 to 5",
    "softmax": "softmax",
    "softmax-unigram": "softmax over the unigram",
    "pieces": "softmax of BPE pieces",
    "suffixes": "ours, suffixes",
    "lexicon": "ours, suffixes and lexicon",
    "pretrained": "the network of --pretrained, fine-tuned with its own tokenizer",
    "mixed": "the best softmax and the best of ours, each mixed with n-grams",
}
SOFTMAX, OURS = ("softmax", "softmax-unigram", "pieces"), ("suffixes", "lexicon")
NEURAL = (*SOFTMAX, *OURS)
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "*.safetensors"  # in a folder of save_pretrained
PRETRAINED_FILES = ("*.json", "*.txt", "*.model", WEIGHTS)  # with all settings and vocabularies
TRIES, QUICK_TRIES = 3, 1
EPOCHS = 80


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
class Comparison:
    """The choices of a comparison. Arguments of `fairseq_llrnn.compare` and options of `llrnn compare`."""

    out: Path
    folder: Path | None = None  # of a UD treebank
    train: Path | None = None  # texts or treebanks, instead of a folder
    valid: Path | None = None
    test: Path | None = None
    words: LexiconOptions = field(default_factory=LexiconOptions)  # sources of features, and the spelling of the text
    lower: str | None = None  # None: keep the case; "": lower-case without a language
    models: Sequence[str] | None = None  # of MODELS; None: all that the texts and files allow
    tries: int | None = None
    seeds: Sequence[int] = (1,)
    pretrained: Path | None = None  # folder of a causal network of transformers
    closed: bool = False  # whether word models are also trained over a closed dictionary
    quick: bool = False
    max_epoch: int | None = None
    jobs: int = 1

    @property
    def sources(self) -> LexiconOptions:
        """The sources of word features, for words in the case of the texts."""
        return replace(self.words, keep_case=self.lower is None, lower=self.lower or None)

    @property
    def has_features(self) -> bool:
        """Whether a source has features of words. Some have lemmas alone."""
        named = [name for name, source in SOURCES.items() if source.has_features and getattr(self.words, name)]
        return bool(named or self.words.language or self.words.morphemes)

    @property
    def may_have_pieces(self) -> bool:
        """Whether pieces are among the models."""
        return self.models is None or "pieces" in self.models

    @property
    def num_tries(self) -> int:
        """The number of trials of each neural model."""
        return self.tries if self.tries is not None else QUICK_TRIES if self.quick else TRIES

    @property
    def epochs(self) -> int:
        """The largest number of epochs."""
        return EPOCHS if self.max_epoch is None else self.max_epoch

    def check(self, option_name: Callable[[str], str]) -> None:
        """Check the choices before any text is read.

        Args:
            option_name: full name of a key of `words` -> its name in messages.

        Raises:
            OptionError: choices that exclude each other or lack another one.
            DataError: a source of features is missing.
        """
        self.sources.check(option_name)
        check_files(self.sources, option_name)
        if (self.folder is None) == (self.train is None):
            found = "neither" if self.folder is None else "both"
            raise OptionError(
                f"expected the folder of a treebank, or --train and --test with files, found {found}; give one of them"
            )
        if self.folder is not None and (self.valid or self.test):
            raise OptionError("--valid and --test need --train; remove them, or give --train instead of the folder")
        if self.train is not None and self.test is None:
            raise OptionError("--train needs --test, the text of the table; add --test FILE")
        if self.models is not None:
            _check_models(self.models)
            if "pretrained" in self.models and self.pretrained is None:
                raise OptionError("--models pretrained: it needs --pretrained FOLDER; add that")
        if self.pretrained is not None:
            need_library("--pretrained", "transformers", "hf")
            _check_pretrained(self.pretrained)
        check_least("--tries", self.num_tries, 1)
        if self.num_tries > len(TRIALS):
            raise OptionError(f"--tries {self.num_tries}: expected at most {len(TRIALS)}, the number of settings")
        check_least("--max-epoch", self.epochs, 1)
        check_least("--jobs", self.jobs, 1)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            shown = " ".join(map(str, self.seeds))
            raise OptionError(f"--seeds {shown}: expected different numbers of at least 0; correct them")


def _check_pretrained(folder: Path) -> None:
    """Raise DataError for a folder without a network and a fast tokenizer of save_pretrained."""
    lacking = [name for name in (CONFIG, TOKENIZER) if not (folder / name).is_file()]
    if lacking or not weights_of(folder):
        found = "no such folder" if not folder.is_dir() else f"no {lacking[0]}" if lacking else "no *.safetensors"
        raise DataError(
            f"--pretrained {folder}: expected a folder of save_pretrained with {CONFIG}, {TOKENIZER} and "
            f"*.safetensors, found {found}; save the model and its tokenizer there"
        )


def weights_of(folder: Path) -> list[Path]:
    """Return the files with the weights of a network of transformers."""
    return sorted(folder.glob(WEIGHTS))


def _check_models(models: Sequence[str]) -> None:
    """Raise OptionError for names that are not in MODELS, none at all, or mixtures without their parts."""
    if not models:
        raise OptionError(f"--models: expected names, found none; choose from {', '.join(MODELS)}")
    for name in models:
        check_choice("--models", name, MODELS)
    if "mixed" in models and not ("ngrams" in models and set(models) & set(NEURAL)):
        raise OptionError("--models mixed: it needs ngrams and a model to mix, such as suffixes; add them")
