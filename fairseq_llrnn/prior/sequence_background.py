"""Backgrounds that know the words before, for `llrnn prior`: n-grams from files or text, automata from files.

Sizes: V words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.reading import read_automaton
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.text_lines import iter_lines, place
from fairseq_llrnn.ngrams.background import (
    DEFAULT_FOLDS,
    NGramBackground,
    check_weighing,
    ngram_from_file,
    ngram_from_text,
)
from fairseq_llrnn.ngrams.sentences import Sentences, read_sentences
from fairseq_llrnn.prior.coverage import POSSIBLE, first_impossible
from fairseq_llrnn.prior.parts.automaton import ON_ZERO, AutomatonPart, floored, tempered
from fairseq_llrnn.prior.prior import Prior


@dataclass(frozen=True)
class ContextualSettings:
    """What `llrnn prior --background ngram:…` or `automaton:…` can be told."""

    kind: str  # one of parts.automaton.MADE_FROM
    source: str  # what follows the colon: a path, or the order of n-grams to estimate
    weight: float = 1.0
    temperature: float = 1.0
    folds: int = DEFAULT_FOLDS
    on_zero: str = ON_ZERO[0]
    unknown_symbols: str = "error"
    copies: bool = False  # whether texts of words spelled in characters can hold those of their source
    texts: tuple[str, ...] = ()  # that n-grams are estimated from; none: those of the unigram

    @property
    def order(self) -> int | None:
        """Of n-grams to estimate; None for what is read from a file."""
        return int(self.source) if self.kind == "ngram" and self.source.isdecimal() else None


def add_contextual(
    prior: Prior, words: WordList, settings: ContextualSettings, texts: Sequence[str]
) -> tuple[Prior, Counter[str]]:
    """The prior with this background over its own, and what a user should know about it.

    Args:
        texts: the training text, tokenised, one sentence a line: n-grams are estimated from it (or from
            `settings.texts`, over the prior's own unigram), and a sentence of it to which an automaton gives no
            probability is treated as `settings.on_zero` says.

    Raises:
        DataError, OptionError: as the readers do; DataError for a sentence of probability zero.
    """
    if settings.kind == "ngram":
        return _with_ngrams(prior, words, settings, texts)
    check_weighing(1.0, settings.temperature)
    log_weights = prior.log_weights / settings.temperature
    read = read_automaton(settings.source, words, settings.unknown_symbols, log_weights)
    automaton, notes = tempered(read.automaton, settings.temperature), Counter(read.notes)
    if texts and not settings.copies:  # what a text can hold is only known beside its source
        notes.update(_without_probability(automaton, log_weights, words, settings, texts))
    if settings.on_zero == "floor":
        automaton = floored(automaton, log_weights)
    part = AutomatonPart(automaton, "automaton", temperature=settings.temperature, on_zero=settings.on_zero)
    return replace(prior, log_weights=log_weights).with_part(part), notes


def _with_ngrams(
    prior: Prior, words: WordList, settings: ContextualSettings, texts: Sequence[str]
) -> tuple[Prior, Counter[str]]:
    weight, temperature, order = settings.weight, settings.temperature, settings.order
    made: NGramBackground
    if order is None:
        made = ngram_from_file(settings.source, words, weight, temperature)
    else:
        sentences = read_sentences(settings.texts or texts, words)
        unigrams = _unigram_below(prior, words, sentences) if settings.texts else None
        made = ngram_from_text(sentences, words, order, settings.folds, weight, temperature, unigrams=unigrams)
    part = AutomatonPart(made.automaton, "ngram", weight, temperature)
    return replace(prior, log_weights=made.log_weights).with_part(part), made.notes


def _unigram_below(prior: Prior, words: WordList, sentences: Sentences) -> np.ndarray:
    """log b₀ of the prior as a distribution, for n-grams of other sentences: (V,). Raises OptionError for a gap."""
    seen = np.unique(sentences.tokens)
    lost = seen[words.predictable[seen] & ~np.isfinite(prior.log_weights[seen])]
    if len(lost):
        raise OptionError(
            f"--ngram-text: expected words that the unigram below allows, found {prior.symbols[lost[0]]!r} "
            f"({len(lost):,} such words in all); choose a --smoothing that leaves some weight to unseen words, or add "
            "the text to --count-text"
        )
    return prior.log_weights - np.logaddexp.reduce(prior.log_weights)


def _without_probability(
    automaton: Automaton,
    log_weights: np.ndarray,
    words: WordList,
    settings: ContextualSettings,
    texts: Sequence[str],
) -> Counter[str]:
    """Sentences of the texts without probability, counted; the first of them is an error where they are one."""
    found = 0
    for path in texts:
        sentences = read_sentences([path], words)
        places = first_impossible(automaton, log_weights, sentences)
        bad = np.flatnonzero(places != POSSIBLE)
        if len(bad) and settings.on_zero == "error":
            raise DataError(_what_is_wrong(path, int(bad[0]), int(places[bad[0]]), len(bad)))
        found += len(bad)
    what = {"skip": "that training leaves out", "floor": "that have a small one by --on-zero floor"}
    note = f"sentences of --count-text to which the background gives probability zero, {what.get(settings.on_zero)}"
    return Counter({note: found} if found else {})


def _what_is_wrong(path: str, sentence: int, where: int, many: int) -> str:
    """The message about the `where`-th word (or the end) of a sentence, counted from 0."""
    number, line = next((n, line) for i, (n, line) in enumerate(iter_lines(path)) if i == sentence)
    tokens = [*line.split(), "</s>"]
    before = " ".join(tokens[max(0, where - 4) : where]) or "the start"
    return (
        f"{place(Path(path), number)}: the background gives {tokens[where]!r} probability zero after {before!r} (token "
        f"{where + 1}; {many:,} such sentences in all); fix the grammar or the text, or say --on-zero skip (training "
        "leaves such sentences out) or --on-zero floor (what it forbids gets a little weight)"
    )


def parse_background(text: str) -> tuple[str, str] | None:
    """Kind and source of `ngram:…` or `automaton:…`; None for another background.

    Raises:
        OptionError: nothing behind the colon.
    """
    kind, colon, source = text.partition(":")
    if not colon or kind not in ("ngram", "automaton"):
        return None
    if not source:
        example = "ngram:model.arpa or ngram:3" if kind == "ngram" else "automaton:grammar.txt"
        raise OptionError(f"--background {text}: expected a file behind the colon, found nothing; say e.g. {example}")
    return kind, source
