"""Automata that an expression of --background names: n-grams, grammars, regular expressions, weighted automata.

Sizes: V words.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.reading import read_automaton
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import UNK, WordList
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import iter_lines, place
from fairseq_llrnn.lexicon.language_check import tokens_known
from fairseq_llrnn.ngrams.background import check_weighing, ngram_from_file, ngram_from_text
from fairseq_llrnn.ngrams.sentences import Sentences, read_sentences
from fairseq_llrnn.prior.coverage import POSSIBLE, first_impossible
from fairseq_llrnn.prior.named_backgrounds import Given, a_file, register_background
from fairseq_llrnn.prior.parts.automaton import AutomatonPart, floored, tempered
from fairseq_llrnn.prior.prior import Prior


def _is_arpa(source: str) -> bool:
    return not source.isdecimal() and a_file(source)  # a number: the order of n-grams that are estimated here


@register_background("ngram", example="ngram:model.arpa or ngram:3", is_file=_is_arpa)
def read_ngrams(source: str, prior: Prior, given: Given) -> tuple[AutomatonPart, Counter[str]]:
    """N-grams of an ARPA file, or of order `source` estimated from text."""
    options, texts = given.options, as_paths(given.options.ngram_text)
    weight, temperature = options.ngram_weight, options.temperature
    if not source.isdecimal():
        made = ngram_from_file(source, given.words, weight, temperature)
    elif not (texts or given.texts):
        raise OptionError(
            f"--background ngram:{source}: expected --count-text with the text that the {source}-grams are "
            "estimated from, found none; add it, or give an ARPA file as ngram:FILE"
        )
    else:
        sentences = read_sentences(texts or given.texts, given.words, given.workers)
        unigrams = _unigram_below(prior, given.words, sentences) if texts else None
        pruned = options.ngram_prune
        made = ngram_from_text(
            sentences, given.words, int(source), options.folds, weight, temperature, pruned, unigrams
        )
        known = int((sentences.tokens != given.words.symbols.index(UNK)).sum())
        if texts:
            made.notes.update(tokens_known(f"--ngram-text {' '.join(texts)}", known, len(sentences.tokens)))
    return AutomatonPart(made.automaton, "ngram", weight, temperature, root=made.log_weights), made.notes


@register_background("automaton", example="automaton:grammar.txt", is_file=a_file)
def read_grammar(source: str, prior: Prior, given: Given) -> tuple[AutomatonPart, Counter[str]]:
    """A grammar, regular expression or weighted automaton from a file."""
    options = given.options
    check_weighing(1.0, options.temperature)
    log_weights = prior.log_weights / options.temperature
    read = read_automaton(source, given.words, options.unknown_symbols, log_weights)
    automaton, notes = tempered(read.automaton, options.temperature), Counter(read.notes)
    if given.texts:
        notes.update(_without_probability(automaton, log_weights, given))
    if options.on_zero == "floor":
        automaton = floored(automaton, log_weights)
    part = AutomatonPart(automaton, "automaton", 1.0, options.temperature, options.on_zero, log_weights)
    return part, notes


def _without_probability(automaton: Automaton, log_weights: np.ndarray, given: Given) -> Counter[str]:
    """Sentences of the texts without probability, counted; the first of them is an error where they are one."""
    found, on_zero = 0, given.options.on_zero
    for path in given.texts:
        sentences = read_sentences([path], given.words, given.workers)
        places = first_impossible(automaton, log_weights, sentences)
        bad = np.flatnonzero(places != POSSIBLE)
        if len(bad) and on_zero == "error":
            raise DataError(_what_is_wrong(path, int(bad[0]), int(places[bad[0]]), len(bad)))
        found += len(bad)
    what = {"skip": "that training leaves out", "floor": "that have a small one by --on-zero floor"}
    note = f"sentences of --count-text to which the background gives probability zero, {what.get(on_zero)}"
    return Counter({note: found} if found else {})


def _unigram_below(prior: Prior, words: WordList, sentences: Sentences) -> np.ndarray:
    """log b₀ of the prior as a distribution, for n-grams of other sentences: (V,). Raises OptionError for a gap."""
    seen = np.flatnonzero(np.bincount(sentences.tokens, minlength=len(words)))
    lost = seen[words.predictable[seen] & ~np.isfinite(prior.log_weights[seen])]
    if len(lost):
        raise OptionError(
            f"--ngram-text: expected words that the unigram below allows, found {prior.symbols[lost[0]]!r} "
            f"({len(lost):,} such words in all); choose a --smoothing that leaves some weight to unseen words, or add "
            "the text to --count-text"
        )
    return prior.log_weights - np.logaddexp.reduce(prior.log_weights)


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
