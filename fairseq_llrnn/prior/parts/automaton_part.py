"""Automata as a part of a prior: n-grams, grammars, regular expressions, weighted automata.

Sizes: V words, n sentences, N pairs of a state and a token.

`first_impossible` finds sentences to which an automaton gives probability zero. Training on them would give an infinite
loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from typing_extensions import Doc

from fairseq_llrnn import defaults
from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton
from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import UNK, WordList
from fairseq_llrnn.files.numbers import TEMPERATURE, is_temperature
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import iter_lines, place
from fairseq_llrnn.lexicon.language_check import unknown_remark
from fairseq_llrnn.ngrams.background import DEFAULT_FOLDS, check_order, ngram_from_file, ngram_from_text
from fairseq_llrnn.ngrams.folds import LARGEST_FOLDS
from fairseq_llrnn.ngrams.ngrams import Sentences, read_sentences
from fairseq_llrnn.prior.arrays import check_log_weights
from fairseq_llrnn.prior.named_backgrounds import Inputs, a_file, register_background
from fairseq_llrnn.prior.part import BuildContext, Facts, Part, PriorView, SavedPart, register_part
from fairseq_llrnn.settings import Paths, Settings

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.background import Background


POSSIBLE = -1


def step(automaton: Automaton, log_weights: np.ndarray, states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Return the states (N,) after `tokens` (N,), or −1 if the background gives a token no weight.

    Args:
        log_weights: log b₀, (V,), used if failing ends in ROOT.
    """
    arcs, end, _ = automaton.look_up(states, tokens)
    after = np.full(len(states), -1, dtype=np.int64)
    after[arcs >= 0] = automaton.nexts[arcs[arcs >= 0]]
    rooted = (end == ROOT) & np.isfinite(log_weights[tokens])
    block = np.where(tokens == END, 0, states // automaton.block_size * automaton.block_size)
    after[rooted] = (automaton.root_next[tokens] + block)[rooted]
    return after


def first_impossible(automaton: Automaton, log_weights: np.ndarray, sentences: Sentences) -> np.ndarray:
    """Return the position of each sentence's first word without weight: (n,). </s> has the position of the length.

    A sentence with a positive probability gets POSSIBLE.
    """
    places = np.full(len(sentences), POSSIBLE, dtype=np.int64)
    if (automaton.chain_end == ROOT).all() and np.isfinite(log_weights[np.append(sentences.tokens, END)]).all():
        return places
    starts = sentences.lengths.cumsum() - sentences.lengths
    active, states = np.arange(len(sentences)), np.full(len(sentences), automaton.starts[0])
    padded = np.append(sentences.tokens, END)
    for position in range(int(sentences.lengths.max(initial=0)) + 1):
        ends = sentences.lengths[active] == position
        tokens = np.where(ends, END, padded[np.minimum(starts[active] + position, len(sentences.tokens))])
        after = step(automaton, log_weights, states, tokens)
        places[active[after < 0]] = position
        is_active = (after >= 0) & ~ends
        active, states = active[is_active], after[is_active]
    return places


ORIGINS = ("ngram", "automaton")
ON_ZERO = defaults.ON_ZERO  # treatments of training sentences of probability zero
ZERO_TEXTS = {"error": "an error", "skip": "left out of training", "floor": "given a little weight"}
FLOOR = defaults.AUTOMATON_FLOOR  # factor of b₀ for forbidden words with on_zero=floor
INTEGERS = ("starts", "offsets", "tokens", "nexts", "fail", "root_next")
NUMBERS = ("log_weights", "back_off")


@register_part("automaton")
@dataclass(frozen=True)
class AutomatonPart(Part):
    """An automaton over a root b₀."""

    automaton: Automaton
    made_from: str  # one of ORIGINS
    weight: float = 1.0  # the `weight` of ngram(N, …)
    temperature: float = 1.0
    on_zero: str = "error"
    root: np.ndarray | None = None  # (V,) float64, its own log b₀; None: the prior's

    is_base = True

    @property
    def leaves_out(self) -> bool:
        """Whether training leaves out sentences that it forbids."""
        return self.on_zero == "skip"

    def impossible(self, prior: PriorView, sentences: Sequence[Sequence[int]]) -> np.ndarray | None:
        if not (self.automaton.fail == NOTHING).any():  # words without an arc have those of the failure state
            return None
        return first_impossible(self.automaton, self.root_of(prior.log_weights), Sentences.of(sentences))

    @property
    def folds(self) -> int:
        """The number of folds in cross-fitted training."""
        return len(self.automaton.starts) - 1

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {name: getattr(self.automaton, name) for name in (*INTEGERS, *NUMBERS)}
        return arrays if self.root is None else arrays | {"root": self.root}

    def description(self) -> dict[str, Any]:
        return {
            "made_from": self.made_from,
            "weight": self.weight,
            "temperature": self.temperature,
            "on_zero": self.on_zero,
            "memory": self.automaton.memory,
        }

    @property
    def identity(self) -> str:
        return ""  # the arrays determine it

    @classmethod
    def read(cls, saved: SavedPart) -> AutomatonPart:
        names = ("made_from", "weight", "temperature", "on_zero", "memory")
        origin, weight, temperature, on_zero, memory = (saved.description[name] for name in names)
        numbers = isinstance(weight, float) and 0.0 <= weight <= 1.0 and is_temperature(temperature)
        memorised = memory is None or (isinstance(memory, int) and not isinstance(memory, bool))
        if not (origin in ORIGINS and on_zero in ON_ZERO and numbers and memorised):
            raise ValueError(f"the automaton is described by something else than {', '.join(names)}")
        arrays = {name: saved.array(name, np.int64) for name in INTEGERS}
        arrays |= {name: saved.array(name, np.float64) for name in NUMBERS}
        size, root = len(saved.prior.symbols), saved.array("root", np.float64) if "root" in saved.arrays else None
        if root is not None:
            check_log_weights(root, size)
        automaton = Automaton(num_symbols=size, memory=memory, **arrays)
        part = cls(automaton, origin, weight, temperature, on_zero, root)
        automaton.check(part.root_of(saved.prior.log_weights))
        dead = (automaton.fail == NOTHING) & (np.diff(automaton.offsets) == 0)
        if dead.any():  # no automaton of `read_automaton` has such a state: it trims
            raise ValueError(f"the automaton allows no word in state {int(dead.argmax())}")
        return part

    def root_of(self, log_weights: np.ndarray) -> np.ndarray:
        """Return log b₀ of the automaton in a prior with these log_weights: (V,)."""
        return log_weights if self.root is None else self.root

    def background(self, below: Background, context: BuildContext) -> Background:
        import torch

        from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground

        root = torch.from_numpy(self.root_of(context.prior.log_weights).copy())
        return AutomatonBackground(context.class_of, context.num_classes, root, self.automaton)

    def reweighed(self, change: Callable[[np.ndarray], np.ndarray]) -> AutomatonPart:
        return self if self.root is None else replace(self, root=change(self.root))

    def lines(self, prior: PriorView) -> list[str]:
        lines = ["n-grams" if self.made_from == "ngram" else "an automaton"]
        if self.folds:
            lines.append(f"cross-fitted in training, {self.folds} folds")
        lines += [f"{name} {value:g}" for name in ("weight", "temperature") if (value := getattr(self, name)) != 1.0]
        if self.made_from == "automaton":
            lines.append(f"sentences it forbids are {ZERO_TEXTS[self.on_zero]}")
        return lines

    def word(self, prior: PriorView, index: int) -> Facts:
        """Return the number of arcs that read a word, and its log weight at the beginning of a sentence."""
        arcs = int((self.automaton.tokens[: self.counts()["automaton arcs"]] == index).sum())
        start, root = self.automaton.starts[:1], self.root_of(prior.log_weights)
        (log_weight,) = self.automaton.log_weights_at(start, np.array([index]), root)
        return {self.made_from: [f"arcs that read it: {arcs:,}", f"log weight at the beginning: {log_weight:.3g}"]}

    def counts(self) -> dict[str, int]:
        """Return the sizes of the final model, without those of the folds."""
        block = self.automaton.num_states // len(self.automaton.starts)
        sizes = {"automaton states": block, "automaton arcs": int(self.automaton.offsets[block])}
        return sizes | ({"cross-fitted folds": self.folds} if self.folds else {})


def floored(automaton: Automaton, log_weights: np.ndarray) -> Automaton:
    """Return the automaton with weight FLOOR · b₀ for words that it forbids. After such a word, b₀ applies.

    The state after such a word is a new, last one. Sentences that the automaton allows keep their weights.

    Args:
        log_weights: log b₀, (V,).
    """
    free = automaton.num_states
    nothing = automaton.fail == NOTHING
    root_next = automaton.root_next.copy()
    if (automaton.chain_end == NOTHING).all():  # else the root already has successor states
        root_next = np.where(np.isfinite(log_weights), free, -1).astype(np.int64)
        root_next[END] = automaton.starts[0] if np.isfinite(log_weights[END]) else -1
    return replace(
        automaton,
        offsets=np.append(automaton.offsets, automaton.offsets[-1]),
        fail=np.append(np.where(nothing, ROOT, automaton.fail), ROOT),
        back_off=np.append(np.where(nothing, np.log(FLOOR), automaton.back_off), 0.0),
        root_next=root_next,
    )


# ---- how it is built -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NgramOptions(Settings):
    """Options of `ngram(N, …)` and `ngram(FILE, …)`."""

    text: Annotated[Paths, Doc("text of ngram(N); the unigram is still that of count_text (default: count_text)")] = ()
    weight: Annotated[
        float, Ge(0), Le(1),
        Doc("factor of each history's own probabilities; the next shorter history has the rest; 0: the unigram"),
    ] = 1.0  # fmt: skip
    temperature: Annotated[
        float,
        *TEMPERATURE,
        Doc("flattens the n-grams relative to the unigram, which remains if the temperature is large"),
    ] = 1.0
    folds: Annotated[
        int, Ge(0), Le(LARGEST_FOLDS),
        Doc(
            "of ngram(N): number of folds (2 at least) for cross-fitting: training reads each sentence with n-grams "
            "that were estimated without its fold; 0 if the network is trained on another text"
        ),
    ] = DEFAULT_FOLDS  # fmt: skip
    prune: Annotated[
        tuple[Annotated[int, Ge(0)], ...],
        Doc(
            "of ngram(N): largest counts of n-grams of one word, two words, … that are left out; [0, 1, 3] leaves out "
            "pairs that occur once, and longer n-grams that occur up to three times"
        ),
    ] = ()

    def __post_init__(self) -> None:
        if self.folds == 1:
            raise ValueError("2 `folds` at least, or 0 for n-grams of a text that the network is not trained on")
        if self.prune and (self.prune[0] != 0 or any(b < a for a, b in zip(self.prune, self.prune[1:], strict=False))):
            raise ValueError(
                "counts in `prune` that never fall, the first one 0 for single words, e.g. [0, 0, 1], which leaves out "
                "n-grams of three words and more that occur once"
            )


@dataclass(frozen=True)
class AutomatonOptions(Settings):
    """Options of `automaton(FILE, …)`."""

    on_zero: Annotated[
        Literal["error", "skip", "floor"],
        Doc(
            "treatment of training sentences with probability zero: error (raised for count_text, and again when "
            f"training starts), skip (leave them out), or floor (forbidden words get {FLOOR:g} times b₀, see `over`: "
            "nothing is impossible)"
        ),
    ] = "error"
    unknown_symbols: Annotated[
        Literal["error", "drop"], Doc("symbols outside the dictionary: an error, or drop the paths with them")
    ] = "error"
    temperature: Annotated[float, *TEMPERATURE, Doc("flattens it: b to the power of 1/T")] = 1.0


def _is_arpa(source: str) -> bool:
    return not source.isdecimal() and a_file(source)  # a number is the order of n-grams to estimate


def _check_ngrams(source: str, options: NgramOptions, texts: Sequence[str]) -> None:
    if source.isdecimal():
        check_order(int(source))
        if not (as_paths(options.text) or texts):
            raise OptionError(
                f"--background ngram:{source} needs --count-text, the text that the {source}-grams are estimated from; "
                "add it, or give an ARPA file as ngram:FILE"
            )
        return
    for name in ("text", "folds", "prune"):
        if getattr(options, name) != getattr(NgramOptions, name):
            raise OptionError(
                f"--background ngram:{source}: {name} is an option of ngram(N), not of a file of n-grams; leave it out"
            )


@register_background(
    "ngram", AutomatonPart, "ngram:model.arpa or ngram:3", is_file=_is_arpa, options=NgramOptions, check=_check_ngrams
)
def read_ngrams(source: str, prior: PriorView, inputs: Inputs) -> tuple[AutomatonPart, Counter[str]]:
    """Read the n-grams of an ARPA file, or estimate those of order `source` from text."""
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
            text_name = f"the text of ngram(…, text={' '.join(texts)})"
            automaton.notes.update(unknown_remark(text_name, unknown, len(sentences.tokens)))
    return AutomatonPart(automaton.automaton, "ngram", weight, temperature, root=automaton.log_weights), automaton.notes


@register_background(
    "automaton", AutomatonPart, "automaton:grammar.txt", is_file=a_file, options=AutomatonOptions, is_constraint=True
)
def read_grammar(source: str, prior: PriorView, inputs: Inputs) -> tuple[AutomatonPart, Counter[str]]:
    """Read a grammar, regular expression or weighted automaton from a file."""
    options: AutomatonOptions = inputs.options
    log_weights = prior.log_weights / options.temperature
    lacking = [prior.symbols[i] for i in np.flatnonzero(inputs.words.predictable & ~np.isfinite(log_weights))]
    if options.on_zero == "floor" and lacking:
        raise OptionError(
            f"--background automaton({source}, on_zero=floor): it needs a background below with weight for every "
            f"word, found {lacking[0]!r} without weight (words without weight: {len(lacking):,}); give them some, or "
            "add --set over=unigram"
        )
    result = read_automaton(source, inputs.words, options.unknown_symbols, log_weights)
    automaton, notes = result.automaton.tempered(options.temperature), Counter(result.notes)
    if inputs.texts:
        notes.update(_without_probability(automaton, log_weights, inputs))
    if options.on_zero == "floor":
        automaton = floored(automaton, log_weights)
    part = AutomatonPart(automaton, "automaton", 1.0, options.temperature, options.on_zero, log_weights)
    return part, notes


def _without_probability(automaton: Automaton, log_weights: np.ndarray, inputs: Inputs) -> Counter[str]:
    """Count sentences of the texts without probability. Raises DataError about the first one if on_zero is "error"."""
    impossible, on_zero = 0, inputs.options.on_zero
    for path in inputs.texts:
        sentences = read_sentences([path], inputs.words, inputs.workers)
        places = first_impossible(automaton, log_weights, sentences)
        rows = np.flatnonzero(places != POSSIBLE)
        if len(rows) and on_zero == "error":
            raise DataError(_zero_probability_message(path, int(rows[0]), int(places[rows[0]]), len(rows)))
        impossible += len(rows)
    treatments = {"skip": "that training leaves out", "floor": "that have a small one by on_zero=floor"}
    note = f"sentences of --count-text to which the background gives probability zero, {treatments.get(on_zero)}"
    return Counter({note: impossible} if impossible else {})


def _unigram_below(prior: PriorView, words: WordList, sentences: Sentences) -> np.ndarray:
    """Return log b₀ of the prior as a distribution, for n-grams of other sentences: (V,).

    Raises:
        OptionError: b₀ forbids a word of the sentences.
    """
    used_words = np.flatnonzero(np.bincount(sentences.tokens, minlength=len(words)))
    gaps = used_words[words.predictable[used_words] & ~np.isfinite(prior.log_weights[used_words])]
    if len(gaps):
        raise OptionError(
            f"--background ngram(…, text=FILE): expected words that the unigram below allows, found "
            f"{prior.symbols[gaps[0]]!r} ({len(gaps):,} such words in all); choose a smoothing that leaves some weight "
            "to unseen words (`over` of the recipe), or add the text to --count-text"
        )
    return prior.log_weights - np.logaddexp.reduce(prior.log_weights)


def _zero_probability_message(path: str, sentence: int, position: int, total: int) -> str:
    """Return the message about token `position` of a sentence, or its end, counted from 0."""
    number, line = next((n, line) for i, (n, line) in enumerate(iter_lines(path)) if i == sentence)
    tokens = [*line.split(), "</s>"]
    before = " ".join(tokens[max(0, position - 4) : position]) or "the start"
    return (
        f"{place(Path(path), number)}: the background gives {tokens[position]!r} probability zero after {before!r} "
        f"(token {position + 1}; {total:,} such sentences in all); fix the grammar or the text, or set on_zero=skip, "
        "as in automaton(FILE, on_zero=skip) (training leaves such sentences out), or on_zero=floor (forbidden words "
        "get a little weight)"
    )
