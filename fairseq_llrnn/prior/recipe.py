"""The settings that a prior is built from, for `llrnn prior` and `build_prior` (building.py).

    Recipe(text="train.txt", words=LexiconOptions(conllu=["fr.conllu"]), suffixes=5, background="ngram:3")

prior.toml (recipe_file.py) has the same keys, and some are options of the command. Names, ranges, defaults and help are
defined only here. Files are given by one or several paths. Python also accepts objects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from typing_extensions import Doc

from fairseq_llrnn import defaults
from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.rules import DEFAULT_WEIGHT, features
from fairseq_llrnn.features.feature_table import AUTO, IDENTITY_FLOOR
from fairseq_llrnn.features.spelling_features import DEFAULT_SUFFIX_FLOOR, UserPatterns
from fairseq_llrnn.files.processes import MOST_BY_DEFAULT, MOST_WORKERS
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers.word_counts import language_of_place
from fairseq_llrnn.open_vocabulary.classes import LEAST_TYPES
from fairseq_llrnn.settings import (
    NOT_KEPT,
    OBJECT,
    FilePath,
    FolderPath,
    OneOf,
    Option,
    PathOrContent,
    Paths,
    PathsOrNames,
    Settings,
)

Kind = Annotated[str, OneOf(features)]
Form = Literal["numbers", "dates", "codes", "urls", "names"]
Identities = Annotated[int, Ge(0)] | Literal["all", "auto"]

OF_FILES = "dictionary, counts and result"
OF_WORDS = "sources of word features"
OF_FEATURES = "features of the model"
OF_BACKGROUND = "background"
OF_SOURCE = "translation"


@dataclass(frozen=True)
class TranslationOptions(Settings):
    """Lexical translations: t(target word | source word), aligned in a parallel text."""

    data: Annotated[
        FolderPath | Annotated[ParallelText, OBJECT],
        Option("--lexical-translation", OF_SOURCE, "DIR"),
        Doc(
            "folder of fairseq-preprocess with a bitext (train.SRC-TGT.…), in which TGT is the language of the "
            "dictionary; the background of a sentence is mixed with the translations of its source words"
        ),
    ]
    weight: Annotated[
        float, Ge(0), Lt(1), Doc("share of the translations in the background, or its initial value if it is learned")
    ] = defaults.LEXICAL_WEIGHT
    learned: Annotated[bool, Doc("the weight is a parameter of the model")] = False
    top: Annotated[int, Ge(1), Doc("most translations of a source word")] = defaults.LEXICAL_TOP
    units: Annotated[
        Literal["word", "lemma"],
        Doc(
            "unit of the target that is aligned and counted: `word`, or `lemma`. With lemmas, translations include "
            "forms that are not in the bitext, and the network chooses among the forms by their features. Lemmas come "
            "from the sources in [words], and are guessed for all other words"
        ),
    ] = "word"
    form_power: Annotated[
        float, Ge(0), Le(1),
        Doc(
            "with units = lemma: forms share the probability of their lemma in proportion to their counts to this "
            "power; 0: all forms equally, 1: by their frequency"
        ),
    ] = defaults.FORM_POWER  # fmt: skip
    source_lexicon: Annotated[
        Paths,
        Doc(
            "tables of `llrnn lexicon` with the lemmas of source words: rare words back off to their lemmas, and words "
            "outside the bitext use the translations of their lemmas. Lemmas of words in no table are guessed"
        ),
    ] = ()
    aligner: Annotated[
        Literal["auto", "eflomal", "ibm1"],
        Doc(
            "word aligner: eflomal (more accurate; it must be installed; it is random, so that two runs differ "
            "slightly), ibm1, or auto: eflomal if it is installed"
        ),
    ] = "auto"

    def check(self, option_name: Callable[[str], str] = str) -> None:
        """Raise OptionError if `data` is no folder. `option_name`: as in `settings.checked`."""
        if isinstance(self.data, (str, Path)) and not os.path.isdir(self.data):
            raise OptionError(
                f"{option_name('data')} {self.data}: expected the folder that fairseq-preprocess wrote, found "
                f"{'a file' if os.path.exists(self.data) else 'no such folder'}; give its --destdir"
            )

    @property
    def parallel(self) -> ParallelText:
        """The bitext, once it is read."""
        assert isinstance(self.data, ParallelText)  # read by `build`
        return self.data


@dataclass(frozen=True)
class EvidenceOptions(Settings):
    """Strings that a translation copies from its source."""

    kinds: Annotated[
        tuple[Kind, ...],
        Option("--evidence", OF_SOURCE, "KINDS", list_of_commas=True),
        Doc(
            "copy source words of these kinds into the translation, even if they are in no dictionary: mapped, "
            "patterns, numbers, dates, codes, urls, names, copies, translations, terms (patterns: those of `patterns`; "
            "copies: every other unknown word, which is, over pieces, one outside the bitext's training text; "
            "translations: translations of source words by lexical translation, which the network then finds by their "
            "place in the source; terms: those of a terms file)"
        ),
    ] = ()
    mapping: Annotated[
        PathOrContent | Mapping[str, Sequence[str]] | None,
        Doc("target words of source words (TSV: source word, target words), for the kind `mapped`"),
    ] = None
    weight: Annotated[
        float, Gt(0), Doc("total background of the evidence of a sentence; that of all words together is 1")
    ] = DEFAULT_WEIGHT
    unsupported: Annotated[
        Mapping[Form, Annotated[float, Ge(0), Le(1)]],
        Doc(
            "factors of the background of target words that look like numbers, dates, codes, urls or names and have no "
            "slot in the sentence: 0 forbids them; e.g. {numbers = 0}"
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenOptions(Settings):
    """Classes of words outside the dictionary."""

    kind: Annotated[
        Literal["characters", "neural"],
        Option("--open-vocabulary", OF_WORDS),
        Doc(
            "give every string a probability: <unk> becomes classes of unknown words, learned from the rare words of "
            "the counted text (or of the dictionary). Each class has features and a distribution over all strings: "
            "character n-grams (characters), or also a network that sees the context and is trained with the model "
            "(neural)"
        ),
    ] = "characters"
    floor: Annotated[
        int, Ge(1), Doc("largest count of a rare word; some tokens of rare words are read as unknown in training")
    ] = defaults.OPEN_FLOOR
    types: Annotated[
        int, Ge(1), Doc("least number of rare words with equal features for a class of their own")
    ] = LEAST_TYPES
    lexicon: Annotated[
        PathsOrNames,
        Option("--spelling-lexicon", OF_WORDS, "FILE"),
        Doc(
            "with an open vocabulary: words that unknown words often are. A FILE has a word in each line, "
            "`word<TAB>count`, rows of UniMorph, or rows of a lexicon (.gz too). FILE.dic of hunspell, with FILE.aff, "
            "has all forms that its rules make. language:CODE uses the frequencies of an installed package. Rare words "
            "of the text give each list its share in each class"
        ),
    ] = ()

    def check(self, option_name: Callable[[str], str] = str) -> None:
        """Raise OptionError or DataError for a lexicon that is missing. `option_name`: as in `settings.checked`."""
        for name in as_paths(self.lexicon):
            language_of_place(name, option_name("lexicon"))


@dataclass(frozen=True)
class Recipe(Settings):
    """All settings that a prior is built from."""

    dictionary: Annotated[
        FilePath | None, Option("--dict", OF_FILES, "FILE"), Doc("dict.txt of fairseq-preprocess")
    ] = None
    text: Annotated[
        Paths,
        Option("--count-text", OF_FILES, "FILE"),
        Doc(
            "tokenised text whose counts rank the words and give the unigram (default: the counts in the dictionary, "
            "which lack the end of sentence; it is assumed after every 25 words)"
        ),
    ] = ()
    counts: Annotated[
        Annotated[np.ndarray, OBJECT] | None, Doc("(V,) counts instead of those of a text; only in Python")
    ] = None
    workers: Annotated[
        Annotated[int, Ge(1), Le(MOST_WORKERS)] | None,
        NOT_KEPT,
        Doc(
            "processes that read texts and align words; the prior does not depend on it (default: one for each core, "
            f"at most {MOST_BY_DEFAULT})"
        ),
    ] = None
    shapes: Annotated[
        bool, Option("--shapes", OF_WORDS), Doc("add features of the word shape: numbers, years, capitals, hyphens")
    ] = False
    suffixes: Annotated[
        Annotated[int, Ge(1)] | None,
        Option("--suffixes", OF_WORDS, "FLOOR", alone=DEFAULT_SUFFIX_FLOOR),
        Doc(
            "add suffixes of length 2-4 that at least FLOOR word types share (`--suffixes` alone, or true: "
            f"{DEFAULT_SUFFIX_FLOOR}; default: no suffixes)"
        ),
    ] = None
    patterns: Annotated[
        PathOrContent | Annotated[UserPatterns, OBJECT] | None, Doc("TOML file with your own regular expressions")
    ] = None
    pieces: Annotated[
        Literal["sentencepiece", "bpe"] | None,
        Option("--pieces", OF_WORDS),
        Doc(
            "the dictionary contains pieces of words: of sentencepiece (`▁` begins a word), or of subword-nmt's bpe "
            "(`@@`: the word continues). A piece has the features of the words that contain it, weighed by their "
            "shares in the counted text, which must be in pieces, too. Shares are rounded to quarters"
        ),
    ] = None
    top_words: Annotated[
        Identities | None,
        Option("--top-words", OF_FEATURES, "M"),
        Doc(
            "words with an indicator feature: the M most frequent ones, `all`, or `auto`: those that occur at least "
            "`identity_floor` times in the counted text (default: auto, or all with --labels)"
        ),
    ] = None
    identity_floor: Annotated[
        int, Ge(1), Doc("least count of a word that gets an indicator feature by `auto`")
    ] = IDENTITY_FLOOR
    features: Annotated[
        tuple[str, ...] | None,
        Option("--features", OF_FEATURES, "GROUPS", list_of_commas=True),
        Doc("feature groups of the network's output (φ), e.g. POS and Gender (default: all)"),
    ] = None
    input_features: Annotated[
        tuple[str, ...] | None, Doc("feature groups of the network's input (ψ; default: those of φ)")
    ] = None
    input_top_words: Annotated[
        Identities | None, Doc("words with an indicator feature in the input (default: `top_words`)")
    ] = None
    labels: Annotated[
        bool,
        Option("--labels", OF_FEATURES),
        Doc(
            "the dictionary's words are labels of texts, for --task llrnn_classification: the end of a sentence and "
            "<unk> have probability zero"
        ),
    ] = False
    background: Annotated[
        str,
        Option("--background", OF_BACKGROUND, "EXPRESSION"),
        Doc(
            "unigram; uniform; language or language:CODE, word frequencies of a package "
            "(docs/guides/features-and-lexicons.md); a TSV of `word<TAB>weight`; ngram:FILE, an ARPA file (.gz too);"
            " ngram:N, n-grams of order N estimated from the counted text; automaton:FILE, a grammar, regular "
            "expression or weighted automaton over the words (docs/guides/grammars.md); model:FILE, the checkpoint "
            "of a trained language model; cache:N, the last N words (up to 100,000). Options are in parentheses, as "
            "in `ngram(3, folds=10)`, `cache(500, weight=0.9)`, `automaton(FILE, on_zero=skip)` or "
            "`unigram(smoothing=additive)` (docs/options/llrnn-prior.md lists all). Combine several, with parentheses "
            "if needed: `automaton:FILE times ngram:3` (both must allow a word), `0.7 ngram:3 plus 0.3 cache:500`, "
            "`ngram:3 plus model:FILE with weights learned` (or `with weights per position`: predicted by the "
            "network), `ngram:3 at temperature 2`"
        ),
    ] = "unigram"
    over: Annotated[
        str | None,
        Doc(
            "the static background below n-grams of another text, automata, caches and models, e.g. "
            "unigram(smoothing=additive) (default: the first static one of `background`, or unigram)"
        ),
    ] = None
    source_dictionary: Annotated[
        PathOrContent | Sequence[str] | None,
        Doc("dict.txt of the source (default: that of the bitext, or the only other one next to the dictionary)"),
    ] = None
    words: LexiconOptions = LexiconOptions()
    translations: TranslationOptions | None = None
    evidence: EvidenceOptions | None = None
    open_vocabulary: OpenOptions | None = None

    @classmethod
    def softmax(cls) -> Recipe:
        """Return the recipe of a softmax: each word is its own and only feature, and the background is uniform."""
        return cls(top_words="all", background="uniform")

    @property
    def identities(self) -> int | Literal["all", "auto"]:
        """The words with an indicator feature."""
        return self.top_words if self.top_words is not None else "all" if self.labels else AUTO

    @property
    def between_lemmas(self) -> bool:
        """Whether translations are between lemmas."""
        return self.translations is not None and self.translations.units == "lemma"

    def check(self, option_name: Callable[[str], str] = str) -> None:
        """Raise OptionError for keys that exclude each other or lack another one. `option_name`: as in
        `settings.checked`.
        """
        self.words.check(lambda name: option_name(f"words.{name}"))
        if self.translations is not None:
            self.translations.check(lambda name: option_name(f"translations.{name}"))
        if self.open_vocabulary is not None:
            self.open_vocabulary.check(lambda name: option_name(f"open_vocabulary.{name}"))
        power = defaults.FORM_POWER if self.translations is None else self.translations.form_power
        lemma_options = {"words.hunspell": self.words.hunspell, "translations.form_power": power != defaults.FORM_POWER}
        for name, value in lemma_options.items():
            if value and not self.between_lemmas:
                raise OptionError(f"{option_name(name)}: it needs translations.units=lemma; add that, or leave it out")
        word_options = {
            "words.morphemes: morphemes are": self.words.morphemes,
            "translations.source_lexicon: lemmas are": self.translations and self.translations.source_lexicon,
            "translations.units=lemma: lemmas are": self.between_lemmas,
            "--evidence translations: it is": self.evidence and "translations" in self.evidence.kinds,
            "--open-vocabulary: it is": self.open_vocabulary,
        }
        for message, is_set in word_options.items() if self.pieces is not None else ():
            if is_set:
                raise OptionError(
                    f"{message} of whole words, found --pieces {self.pieces}; preprocess words, or leave one out"
                )
        if self.evidence is not None and not self.evidence.kinds and self.evidence.mapping is None:
            raise OptionError("--evidence: expected kinds, or evidence.mapping, found none; name one, e.g. numbers")
        if self.identity_floor != IDENTITY_FLOOR and AUTO not in (self.identities, self.input_top_words):
            raise OptionError(
                f"identity_floor {self.identity_floor}: it needs top_words auto, found top_words {self.identities}; "
                "leave one of them out"
            )
