"""What a prior can be built from, and how: the options of `llrnn prior` and of `Prior.build` (building.py).

    Recipe(text="train.txt", words=LexiconOptions(conllu=["fr.conllu"]), suffixes=5, background="ngram:3")

Names in capitals with `--` in messages are those of the command line. Files are paths, one or several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fairseq_llrnn import defaults
from fairseq_llrnn.alignment.aligners import choose_aligner
from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.evidence.rules import DEFAULT_WEIGHT, check_factor
from fairseq_llrnn.features.identities import AUTO, IDENTITY_FLOOR, TopWords
from fairseq_llrnn.features.user_patterns import UserPatterns
from fairseq_llrnn.files.reading import Paths
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.open_vocabulary.classes import LEAST_TYPES
from fairseq_llrnn.prior.open_vocabulary import FLOOR

UNITS = defaults.UNITS


@dataclass(frozen=True)
class TranslationOptions:
    """Lexical translations: t(target word | source word), aligned in a parallel text."""

    text: ParallelText
    weight: float = defaults.LEXICAL_WEIGHT  # λ, or where it starts if it is learned
    learned: bool = False
    top: int = defaults.LEXICAL_TOP  # translations of a source word
    aligner: str = "auto"  # "eflomal", "ibm1" or "auto": eflomal where it is installed
    units: str = UNITS[0]  # what is aligned and counted of the target: words, or their lemmas
    source_lexicon: Paths = ()  # tables with the lemmas of source words, which rare ones fall back on
    form_power: float = defaults.FORM_POWER  # of lemmas: how much counts of forms count for their shares, from 0 to 1

    def check(self) -> None:
        """Raise OptionError where a number is out of range, or the aligner is not there."""
        if not 0.0 <= self.weight < 1.0:
            raise OptionError(
                f"--lexical-weight {self.weight}: expected a number from 0 to below 1 (1 would forbid every word but "
                "the translations), or `learned`; 0.5 is a good start"
            )
        check_least("--lexical-top", self.top, 1, "translations")
        if self.units not in UNITS:
            raise OptionError(f"--lexical-units {self.units}: expected {' or '.join(UNITS)}; correct the spelling")
        if not 0.0 <= self.form_power <= 1.0:
            raise OptionError(
                f"--lexical-form-power {self.form_power}: expected a number from 0 (all forms of a lemma alike) to 1 "
                "(as frequent as they are)"
            )
        choose_aligner(self.aligner)


@dataclass(frozen=True)
class EvidenceOptions:
    """Strings that a translation takes from its source."""

    kinds: Sequence[str] = ()  # of evidence/rules.py; `mapped` is one where there is a mapping
    mapping: str | Path | Mapping[str, Sequence[str]] | None = None  # a TSV, or source word -> target words
    weight: float = DEFAULT_WEIGHT  # ε
    unsupported: Mapping[str, float] = field(default_factory=dict)  # factors of words that look so, by kind

    def check(self) -> None:
        """Raise OptionError for a weight that is none."""
        for kind, factor in self.unsupported.items():
            check_factor(f"{kind}={factor:g}", kind, factor)
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise OptionError(
                f"--evidence-weight {self.weight}: expected a number above 0; {DEFAULT_WEIGHT} is a good start"
            )


@dataclass(frozen=True)
class OpenOptions:
    """Classes of words outside the dictionary."""

    floor: int = FLOOR  # words that occur at most so often are rare
    types: int = LEAST_TYPES  # rare words with equal features that make a class of their own
    neural: bool = False  # whether a network of characters, which a head trains, spells words as well


@dataclass(frozen=True)
class Recipe:
    """Everything that a prior is built from but its dictionary."""

    # where words are counted: in texts, here, or else in the dictionary
    text: Paths = ()
    counts: np.ndarray | None = None  # (V,)
    # where features of words come from
    words: LexiconOptions = LexiconOptions()
    patterns: str | Path | UserPatterns | None = None
    shapes: bool = False
    suffixes: int | None = None  # word types that must share a suffix; None: no suffixes
    pieces: str | None = None  # a convention of features/subwords.py; None: the dictionary holds words
    # which features the model has
    top_words: TopWords = AUTO  # words with an identity: a number, `all`, or by `identity_floor`
    identity_floor: int = IDENTITY_FLOOR  # of `auto`: the count from which a word has an identity
    features: tuple[str, ...] | None = None
    input_features: tuple[str, ...] | None = None
    input_top_words: TopWords | None = None
    # background
    background: str = "unigram"  # an expression (expression.py)
    over: str | None = (
        None  # b₀ below n-grams, automata, caches and models; None: the first static background, or unigram
    )
    # the source of a translation, and words outside the dictionary
    source_dictionary: str | Path | Sequence[str] | None = None  # None: that of the parallel text, or beside the other
    translations: TranslationOptions | None = None
    evidence: EvidenceOptions | None = None
    open_vocabulary: OpenOptions | None = None
    labels: bool = False  # the dictionary's words are labels of texts (labels.py)
    workers: int | None = None  # processes that read texts; None: one for each core. The prior does not depend on it

    @classmethod
    def softmax(cls) -> Recipe:
        """The special case: every word its own and only feature, uniform background."""
        return cls(top_words="all", background="uniform")
