"""The backgrounds that an expression names (`unigram`, `ngram:3`, `automaton:FILE`, …), each as a part of a prior.

Sizes: V words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.reading import read_automaton
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.text_lines import iter_lines, place
from fairseq_llrnn.ngrams.background import check_weighing, ngram_from_file, ngram_from_text
from fairseq_llrnn.ngrams.sentences import Sentences, read_sentences
from fairseq_llrnn.prior.build import static_weights
from fairseq_llrnn.prior.coverage import POSSIBLE, first_impossible
from fairseq_llrnn.prior.expression import Atom, Expression, atoms, parse, with_atoms
from fairseq_llrnn.prior.language_weights import LANGUAGE
from fairseq_llrnn.prior.named_backgrounds import named_background
from fairseq_llrnn.prior.options import BackgroundOptions, as_paths
from fairseq_llrnn.prior.part import Part
from fairseq_llrnn.prior.parts import AutomatonPart, CachePart, StaticPart
from fairseq_llrnn.prior.parts.automaton import floored, tempered
from fairseq_llrnn.prior.prior import Prior

STATIC, TRANSLATIONS = "static", "translations"
EXAMPLES = {  # of kinds with something behind a colon; for those of others, see named_backgrounds.py
    "ngram": "ngram:model.arpa or ngram:3",
    "automaton": "automaton:grammar.txt",
    "model": "model:checkpoint_best.pt",
    "cache": "cache:500",
}


def kind_of(text: str) -> tuple[str, str]:
    """Kind of an atom, and what is behind its colon: ("ngram", "3"); ("static", …) for all others."""
    kind, colon, source = text.partition(":")
    if colon and (kind in EXAMPLES or kind != LANGUAGE and named_background(kind) is not None):
        return kind, source
    return (TRANSLATIONS, "") if text == TRANSLATIONS else (STATIC, text)


def read_background(text: str) -> Expression:
    """The expression of --background; a path with blanks needs no quotes where it stands alone.

    Raises:
        OptionError: it says none, nothing is behind a colon, or the file that is named there does not exist.
    """
    expression = Atom(text) if Path(kind_of(text)[1]).is_file() else parse(text)
    for atom in atoms(expression):
        kind, source = kind_of(atom.text)
        if not source and (example := _example(kind)):
            raise OptionError(
                f"--background {atom.text}: expected a file behind the colon, found nothing; say e.g. {example}"
            )
        if kind == "cache" and not (source.isdecimal() and int(source) > 0):
            raise OptionError(
                f"--background {atom.text}: expected a number of words behind the colon; say e.g. {EXAMPLES[kind]}"
            )
        if kind in ("ngram", "automaton") and not is_order(atom.text) and not Path(source).is_file():
            raise OptionError(
                f"--background {atom.text}: expected the path of a file behind the colon, found none there; check the "
                "spelling"
            )
        if kind == "model" and not Path(source).is_file():
            raise OptionError(
                f"--background {atom.text}: expected a checkpoint behind the colon, found none there; give the .pt "
                "file that training wrote"
            )
    return expression


def _example(kind: str) -> str:
    """Of a kind with something behind its colon; empty for others."""
    if kind in EXAMPLES or kind in (STATIC, TRANSLATIONS):
        return EXAMPLES.get(kind, "")
    return named.example if (named := named_background(kind)) is not None else ""


def is_order(text: str) -> bool:
    """Whether an atom is `ngram:N`, n-grams that are estimated here."""
    kind, source = kind_of(text)
    return kind == "ngram" and source.isdecimal()


@dataclass(frozen=True)
class Leaves:
    """Builds the backgrounds of an expression."""

    words: WordList
    counts: np.ndarray  # (V,) of the unigram
    texts: Sequence[str]  # the training text, tokenised, one sentence a line
    options: BackgroundOptions
    workers: int | None = None  # processes that read the texts; None: one for each core

    def add(self, prior: Prior, expression: Expression) -> tuple[Prior, Counter[str]]:
        """The prior with these backgrounds, and what a user should know about them.

        b₀ becomes the root of the first n-grams, or else of the first automaton; what has another root keeps it.

        Args:
            prior: its b₀ is the first static background of the expression, or else the unigram.

        Raises:
            DataError, OptionError: as the readers do; DataError for a sentence of probability zero.
        """
        leaves = [atom.text for atom in atoms(expression) if kind_of(atom.text)[0] != TRANSLATIONS]
        if isinstance(expression, Atom) and kind_of(expression.text)[0] == STATIC:
            return prior, Counter()
        notes: Counter[str] = Counter()
        built = []
        for text in leaves:
            part, more = self.leaf(prior, text)
            built.append(part)
            notes.update(more)
        automata = [part for part in built if isinstance(part, AutomatonPart)]
        first = min(automata, key=lambda part: part.made_from != "ngram", default=None)
        made = prior if first is None else replace(prior, log_weights=first.root_of(prior.log_weights))
        for part in built:
            if isinstance(part, AutomatonPart) and np.array_equal(part.root_of(prior.log_weights), made.log_weights):
                part = replace(part, root=None)
            made = made.with_part(part)
        if not isinstance(expression, Atom):
            names = iter(made.names)
            made = replace(made, expression=with_atoms(expression, lambda atom: _named(atom, names)))
        return made, notes

    def leaf(self, prior: Prior, text: str) -> tuple[Part, Counter[str]]:
        """One of them, over the prior's b₀."""
        (kind, source), options = kind_of(text), self.options
        if kind == "ngram":
            return self.ngrams(prior, source)
        if kind == "automaton":
            return self.automaton(prior, source)
        if kind == "cache":
            return _cache(int(source), options), Counter()
        if kind == "model":
            if options.open_model is None:
                raise OptionError(
                    f"--background {text}: a trained model is read by fairseq; build this prior with `llrnn prior`, or "
                    "say who reads it (BackgroundOptions.open_model)"
                )
            part, notes = options.open_model(source, prior)
            return part, Counter(notes)
        if kind != STATIC and (named := named_background(kind)) is not None:
            made, known = named.read(source, prior)
            return made, Counter(known)
        return StaticPart(static_weights(self.words, self.counts, text, options)), Counter()

    def ngrams(self, prior: Prior, source: str) -> tuple[AutomatonPart, Counter[str]]:
        """N-grams of an ARPA file, or of order `source` estimated from text."""
        options, texts = self.options, as_paths(self.options.ngram_text)
        weight, temperature = options.ngram_weight, options.temperature
        if not source.isdecimal():
            made = ngram_from_file(source, self.words, weight, temperature)
        elif not (texts or self.texts):
            raise OptionError(
                f"--background ngram:{source}: expected --count-text with the text that the {source}-grams are "
                "estimated from, found none; add it, or give an ARPA file as ngram:FILE"
            )
        else:
            sentences = read_sentences(texts or self.texts, self.words, self.workers)
            unigrams = _unigram_below(prior, self.words, sentences) if texts else None
            pruned = options.ngram_prune
            made = ngram_from_text(
                sentences, self.words, int(source), options.folds, weight, temperature, pruned, unigrams
            )
        return AutomatonPart(made.automaton, "ngram", weight, temperature, root=made.log_weights), made.notes

    def automaton(self, prior: Prior, source: str) -> tuple[AutomatonPart, Counter[str]]:
        """A grammar, regular expression or weighted automaton from a file."""
        options = self.options
        check_weighing(1.0, options.temperature)
        log_weights = prior.log_weights / options.temperature
        read = read_automaton(source, self.words, options.unknown_symbols, log_weights)
        automaton, notes = tempered(read.automaton, options.temperature), Counter(read.notes)
        if self.texts and not options.copy_source_words:  # what a text can hold is only known beside its source
            notes.update(self._without_probability(automaton, log_weights))
        if options.on_zero == "floor":
            automaton = floored(automaton, log_weights)
        part = AutomatonPart(automaton, "automaton", 1.0, options.temperature, options.on_zero, log_weights)
        return part, notes

    def _without_probability(self, automaton: Automaton, log_weights: np.ndarray) -> Counter[str]:
        """Sentences of the texts without probability, counted; the first of them is an error where they are one."""
        found, on_zero = 0, self.options.on_zero
        for path in self.texts:
            sentences = read_sentences([path], self.words, self.workers)
            places = first_impossible(automaton, log_weights, sentences)
            bad = np.flatnonzero(places != POSSIBLE)
            if len(bad) and on_zero == "error":
                raise DataError(_what_is_wrong(path, int(bad[0]), int(places[bad[0]]), len(bad)))
            found += len(bad)
        what = {"skip": "that training leaves out", "floor": "that have a small one by --on-zero floor"}
        note = f"sentences of --count-text to which the background gives probability zero, {what.get(on_zero)}"
        return Counter({note: found} if found else {})


def _named(atom: Atom, names: Iterator[str]) -> Atom:
    """With the name of its part; that of translations is given later."""
    return atom if kind_of(atom.text)[0] == TRANSLATIONS else Atom(atom.text, next(names))


def _cache(size: int, options: BackgroundOptions) -> CachePart:
    part = CachePart(size, options.cache_weight, options.cache_decay, options.cache_learned)
    try:
        part.check()
    except ValueError as error:
        raise OptionError(f"--background cache:{size}: {error}; correct the number") from None
    return part


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
