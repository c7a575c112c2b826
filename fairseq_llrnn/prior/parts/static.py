"""Static weights: one per word, the same in every context. Also as terms of a product or a mixture.

b₀ is one of them: `unigram`, `uniform`, `language:CODE`, or a table of weights.

The unigram of a language uses word frequencies from a package (lexicon/languages), also for words that the counted text
lacks. Tokens that are no words (punctuation, the end of a sentence, `<unk>`) keep their weights in the counted unigram,
because frequency lists lack them. The words share the rest:

    b(x) = U(x)                                       x without a letter or digit, or special
    b(x) = (1 − Σ U(such x)) · f(x) / Σ f(words)      f: frequency. A word outside the list has that of the rarest one

Sizes: V words of the dictionary.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Ge, Le
from typing_extensions import Doc

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.numbers import LARGEST_WEIGHT, LEAST_WEIGHT
from fairseq_llrnn.files.reading import check_there
from fairseq_llrnn.lexicon.languages.findings import frequency_source
from fairseq_llrnn.lexicon.readers.values import read_weights
from fairseq_llrnn.ngrams.kneser_ney import unigram_weights
from fairseq_llrnn.prior.arrays import check_log_weights
from fairseq_llrnn.prior.named_backgrounds import Inputs, named_backgrounds, register_background
from fairseq_llrnn.prior.part import BuildContext, Part, PriorView, SavedPart, register_part
from fairseq_llrnn.settings import Settings

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.background import Background


@register_part("static")
@dataclass(frozen=True)
class StaticPart(Part):
    """Weights of V words that differ from b₀."""

    log_weights: np.ndarray  # (V,) float64, nats; −inf forbids

    is_base = True

    @classmethod
    def of(cls, probabilities: np.ndarray) -> StaticPart:
        """Return the part of probabilities (V,)."""
        with np.errstate(divide="ignore"):
            return cls(np.log(probabilities))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"log_weights": self.log_weights}

    @classmethod
    def read(cls, saved: SavedPart) -> StaticPart:
        log_weights = saved.array("log_weights", np.float64)
        check_log_weights(log_weights, len(saved.prior.symbols))
        return cls(log_weights)

    def background(self, below: Background, context: BuildContext) -> Background:
        import torch

        from fairseq_llrnn.backgrounds.background import StaticBackground

        return StaticBackground(context.class_of, context.num_classes, torch.from_numpy(self.log_weights.copy()))

    def lines(self, prior: PriorView) -> list[str]:
        return ["weights of its own"]

    def reweighed(self, change: Callable[[np.ndarray], np.ndarray]) -> StaticPart:
        return replace(self, log_weights=change(self.log_weights))


# ---- how it is built -----------------------------------------------------------------------------------------------


ORDERS = {"bi": 2, "tri": 3, "four": 4, "five": 5}
ORDER = re.compile(r"([1-5]|bi|tri|four|five)[-_ ]?grams?|(?:n[-_]?grams?|kn)[-_=]?([1-5])", re.IGNORECASE)
TABLE = ""  # the kind of a path without a name
LANGUAGE = "language"  # the kind of `language` and `language:CODE`
STATIC = "unigram", "uniform", "language:CODE"


@dataclass(frozen=True)
class UnigramOptions(Settings):
    """Options of `unigram(…)`, and of `language(CODE, …)`, which takes the weights of punctuation from the unigram."""

    smoothing: Annotated[
        Literal["absolute", "additive", "good-turing", "none"], Doc("smoothing for words that the text lacks")
    ] = "absolute"
    pseudo_count: Annotated[
        Annotated[float, Ge(LEAST_WEIGHT), Le(LARGEST_WEIGHT)] | None,
        Doc("count that additive smoothing adds to every word (default: 1)"),
    ] = None

    def __post_init__(self) -> None:
        if self.pseudo_count is not None and self.smoothing != "additive":
            raise ValueError("smoothing=additive, the only smoothing that adds a count")

    @property
    def added(self) -> float:
        """The number that additive smoothing adds."""
        return 1.0 if self.pseudo_count is None else self.pseudo_count


def check_static(background: str, option: str) -> None:
    """Raise OptionError for text that is neither a background's name nor a path, DataError for an unreadable file."""
    if os.path.exists(background):
        check_there(option, background)
        return
    named = named_backgrounds().items()
    others = {name: entry for name, entry in named if not (entry.part is StaticPart or entry.read is None)}
    guesses = difflib.get_close_matches(background.partition(":")[0], [*STATIC, *others], n=1)
    order = ORDER.fullmatch(background)
    guesses = guesses if order is None else [f"ngram({ORDERS.get((order[1] or '').lower(), order[1] or order[2])})"]
    fix = f"did you mean {guesses[0]}?" if guesses else "check the spelling"
    if ":" in background:
        fix += " If another package has this background, install it"
    raise OptionError(
        f"{option} {background}: expected {', '.join(STATIC)}, {', '.join(n.example for n in others.values())} "
        f"or the path of a TSV file with `word<TAB>weight` rows, found no such file; {fix}"
    )


def _unigram(inputs: Inputs) -> np.ndarray:
    return unigram_weights(inputs.counts, inputs.words.predictable, inputs.options.smoothing, inputs.options.added)


@register_background("unigram", StaticPart, "unigram", options=UnigramOptions)
def read_unigram(source: str, prior: PriorView, inputs: Inputs) -> tuple[StaticPart, Mapping[str, int]]:
    return StaticPart.of(_unigram(inputs)), {}


@register_background("uniform", StaticPart, "uniform")
def read_uniform(source: str, prior: PriorView, inputs: Inputs) -> tuple[StaticPart, Mapping[str, int]]:
    allowed = inputs.words.predictable
    return StaticPart.of(allowed / allowed.sum()), {}


@register_background(LANGUAGE, StaticPart, "language(CODE)", options=UnigramOptions)
def read_language(source: str, prior: PriorView, inputs: Inputs) -> tuple[StaticPart, Mapping[str, int]]:
    """Raises OptionError as `language_weights`."""
    return StaticPart.of(language_weights(inputs.words, _unigram(inputs), inputs.words.predictable, source)), {}


@register_background(TABLE, StaticPart, "weights.tsv", is_file=bool)
def read_table(source: str, prior: PriorView, inputs: Inputs) -> tuple[StaticPart, Mapping[str, int]]:
    """Raises DataError as the reader of the file does."""
    words, allowed = inputs.words, inputs.words.predictable
    index = {word: i for i, word in enumerate(words.symbols) if allowed[i]}
    weights = read_weights(Path(source), index, len(words))
    return StaticPart.of(weights / weights.sum()), {}


def language_weights(words: WordList, unigram: np.ndarray, allowed: np.ndarray, code: str) -> np.ndarray:
    """Return probabilities (V,), float64, summing to one over the allowed words.

    Args:
        unigram: (V,) probabilities U, of the counted text.
        allowed: (V,) bool.

    Raises:
        OptionError: no package has the frequencies of this language, or the package is not installed.
    """
    source = frequency_source(code, f"--background {LANGUAGE}:{code}")
    spelt = np.array([any(map(str.isalnum, word)) for word in words.symbols]) & allowed & ~words.specials
    weights = np.where(allowed & ~spelt, unigram, 0.0)
    places = np.flatnonzero(spelt)
    if len(places):
        frequencies = source.frequencies([words.symbols[i] for i in places], code)
        frequencies = np.maximum(frequencies, source.least(code))
        weights[places] = (1.0 - weights.sum()) * frequencies / frequencies.sum()
    return weights / weights.sum()
