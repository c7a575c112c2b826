"""Automata that an expression of --background names: n-grams, grammars, regular expressions, weighted automata.

Sizes: V words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le
from typing_extensions import Doc

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.reading import read_automaton
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import UNK, WordList
from fairseq_llrnn.files.numbers import TEMPERATURE
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import iter_lines, place
from fairseq_llrnn.lexicon.language_check import unknown_remark
from fairseq_llrnn.ngrams.background import DEFAULT_FOLDS, check_order, ngram_from_file, ngram_from_text
from fairseq_llrnn.ngrams.folds import LARGEST_FOLDS
from fairseq_llrnn.ngrams.ngrams import Sentences, read_sentences
from fairseq_llrnn.prior.named_backgrounds import Inputs, a_file, register_background
from fairseq_llrnn.prior.parts.automaton import FLOOR, POSSIBLE, AutomatonPart, first_impossible, floored
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.settings import Paths, Settings


@dataclass(frozen=True)
class NgramOptions(Settings):
    """Of `ngram(N, …)` and `ngram(FILE, …)`."""

    text: Annotated[
        Paths, Doc("text of ngram(N), over the unigram of count_text (default: count_text, which makes both)")
    ] = ()
    weight: Annotated[
        float, Ge(0), Le(1),
        Doc("how much of its own say each history keeps beside the next shorter one; 0 is the unigram alone"),
    ] = 1.0  # fmt: skip
    temperature: Annotated[
        float,
        *TEMPERATURE,
        Doc("flattens what it says beside the unigram, which is all that is left where it is large"),
    ] = 1.0
    folds: Annotated[
        int, Ge(0), Le(LARGEST_FOLDS),
        Doc(
            "of ngram(N): training sees each sentence with n-grams that were estimated without its fold, one of so "
            "many (2 at least); 0 where the network is trained on another text"
        ),
    ] = DEFAULT_FOLDS  # fmt: skip
    prune: Annotated[
        tuple[Annotated[int, Ge(0)], ...],
        Doc(
            "of ngram(N): n-grams of one word, two words, … that come no more often are left out; [0, 1, 3]: pairs "
            "that come once, longer ones that come up to three times"
        ),
    ] = ()

    def __post_init__(self) -> None:
        if self.folds == 1:
            raise ValueError("2 `folds` at least, or 0 for n-grams of a text that the network is not trained on")
        if self.prune and (self.prune[0] != 0 or any(b < a for a, b in zip(self.prune, self.prune[1:], strict=False))):
            raise ValueError(
                "counts in `prune` that never fall, the first one 0 for single words, e.g. [0, 0, 1], which leaves out "
                "n-grams of three words and more that come once"
            )


@dataclass(frozen=True)
class AutomatonOptions(Settings):
    """Of `automaton(FILE, …)`."""

    on_zero: Annotated[
        Literal["error", "skip", "floor"],
        Doc(
            "what to do with training sentences to which it gives probability zero: an error, looked for in "
            f"count_text and again when training starts; skip them; or floor, which gives what it forbids {FLOOR:g} of "
            "b₀ (see `over`), so that nothing is impossible"
        ),
    ] = "error"
    unknown_symbols: Annotated[
        Literal["error", "drop"], Doc("symbols that the dictionary lacks: an error, or drop what has them")
    ] = "error"
    temperature: Annotated[float, *TEMPERATURE, Doc("flattens it: b to the power of 1/T")] = 1.0


def _is_arpa(source: str) -> bool:
    return not source.isdecimal() and a_file(source)  # a number: the order of n-grams that are estimated here


def _check_ngrams(source: str, options: NgramOptions, texts: Sequence[str]) -> None:
    if source.isdecimal():
        check_order(int(source))
        if not (as_paths(options.text) or texts):
            raise OptionError(
                f"--background ngram:{source}: expected --count-text with the text that the {source}-grams are "
                "estimated from, found none; add it, or give an ARPA file as ngram:FILE"
            )
        return
    for name in ("text", "folds", "prune"):
        if getattr(options, name) != getattr(NgramOptions, name):
            raise OptionError(
                f"--background ngram:{source}: {name} is of ngram(N), n-grams that are estimated here, found a "
                f"file of n-grams; leave {name} out"
            )


@register_background(
    "ngram", AutomatonPart, "ngram:model.arpa or ngram:3", is_file=_is_arpa, options=NgramOptions, check=_check_ngrams
)
def read_ngrams(source: str, prior: Prior, inputs: Inputs) -> tuple[AutomatonPart, Counter[str]]:
    """N-grams of an ARPA file, or of order `source` estimated from text."""
    options: NgramOptions = inputs.options
    texts, weight, temperature = as_paths(options.text), options.weight, options.temperature
    if not source.isdecimal():
        automaton = ngram_from_file(source, inputs.words, weight, temperature)
    else:
        sentences = read_sentences(texts or inputs.texts, inputs.words, inputs.workers)
        unigrams = _unigram_below(prior, inputs.words, sentences) if texts else None
        automaton = ngram_from_text(
            sentences, inputs.words, int(source), options.folds, weight, temperature, options.prune, unigrams
        )
        if texts:
            unknown = int((sentences.tokens == inputs.words.symbols.index(UNK)).sum())
            what = f"the text of ngram(…, text={' '.join(texts)})"
            automaton.notes.update(unknown_remark(what, unknown, len(sentences.tokens)))
    return AutomatonPart(automaton.automaton, "ngram", weight, temperature, root=automaton.log_weights), automaton.notes


@register_background(
    "automaton", AutomatonPart, "automaton:grammar.txt", is_file=a_file, options=AutomatonOptions, is_constraint=True
)
def read_grammar(source: str, prior: Prior, inputs: Inputs) -> tuple[AutomatonPart, Counter[str]]:
    """A grammar, regular expression or weighted automaton from a file."""
    options: AutomatonOptions = inputs.options
    log_weights = prior.log_weights / options.temperature
    lacking = [prior.symbols[i] for i in np.flatnonzero(inputs.words.predictable & ~np.isfinite(log_weights))]
    if options.on_zero == "floor" and lacking:
        raise OptionError(
            f"--background automaton({source}, on_zero=floor): expected a background below it that gives every word "
            f"some weight, of which floor is a part, found one that gives {lacking[0]!r} none (words without weight: "
            f"{len(lacking):,}); give them some, or say --set over=unigram"
        )
    read = read_automaton(source, inputs.words, options.unknown_symbols, log_weights)
    automaton, notes = read.automaton.tempered(options.temperature), Counter(read.notes)
    if inputs.texts:
        notes.update(_without_probability(automaton, log_weights, inputs))
    if options.on_zero == "floor":
        automaton = floored(automaton, log_weights)
    part = AutomatonPart(automaton, "automaton", 1.0, options.temperature, options.on_zero, log_weights)
    return part, notes


def _without_probability(automaton: Automaton, log_weights: np.ndarray, inputs: Inputs) -> Counter[str]:
    """Sentences of the texts without probability, counted; the first of them is an error where they are one."""
    impossible, on_zero = 0, inputs.options.on_zero
    for path in inputs.texts:
        sentences = read_sentences([path], inputs.words, inputs.workers)
        places = first_impossible(automaton, log_weights, sentences)
        bad = np.flatnonzero(places != POSSIBLE)
        if len(bad) and on_zero == "error":
            raise DataError(_what_is_wrong(path, int(bad[0]), int(places[bad[0]]), len(bad)))
        impossible += len(bad)
    what = {"skip": "that training leaves out", "floor": "that have a small one by on_zero=floor"}
    note = f"sentences of --count-text to which the background gives probability zero, {what.get(on_zero)}"
    return Counter({note: impossible} if impossible else {})


def _unigram_below(prior: Prior, words: WordList, sentences: Sentences) -> np.ndarray:
    """log b₀ of the prior as a distribution, for n-grams of other sentences: (V,). Raises OptionError for a gap."""
    seen = np.flatnonzero(np.bincount(sentences.tokens, minlength=len(words)))
    lost = seen[words.predictable[seen] & ~np.isfinite(prior.log_weights[seen])]
    if len(lost):
        raise OptionError(
            f"--background ngram(…, text=FILE): expected words that the unigram below allows, found "
            f"{prior.symbols[lost[0]]!r} ({len(lost):,} such words in all); choose a smoothing that leaves some weight "
            "to unseen words (`over` of the recipe), or add the text to --count-text"
        )
    return prior.log_weights - np.logaddexp.reduce(prior.log_weights)


def _what_is_wrong(path: str, sentence: int, where: int, many: int) -> str:
    """The message about the `where`-th word (or the end) of a sentence, counted from 0."""
    number, line = next((n, line) for i, (n, line) in enumerate(iter_lines(path)) if i == sentence)
    tokens = [*line.split(), "</s>"]
    before = " ".join(tokens[max(0, where - 4) : where]) or "the start"
    return (
        f"{place(Path(path), number)}: the background gives {tokens[where]!r} probability zero after {before!r} (token "
        f"{where + 1}; {many:,} such sentences in all); fix the grammar or the text, or say on_zero=skip, as in "
        "automaton(FILE, on_zero=skip) (training leaves such sentences out), or on_zero=floor (what it forbids gets a "
        "little weight)"
    )
