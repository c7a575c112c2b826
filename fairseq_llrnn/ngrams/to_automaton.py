"""From an n-gram model to an automaton on the dictionary's symbols.

Sizes: V symbols of the dictionary, W words of the model, E n-grams, Q states, K dictionary words that the model lacks.

A state is a history with n-grams that continue it, or with a back-off weight. It fails to the longest suffix that is a
state, the shortest to ROOT, where b₀ has the unigrams. State 0 is the empty history. The model starts in <s>, and again
after every </s>.

If the words of model and dictionary differ:

* Words of the model outside the dictionary are dropped with all n-grams that contain them. Their probability is lost:
  the rest of p(· | h) sums to less than one, in every state by their probability there.
* K dictionary words that the model lacks share p(<unk>) in b₀: each of them, and <unk> itself, gets p(<unk>) / (K + 1).
  After one of them the history is only <unk>. An n-gram that ends in <unk> keeps only the dictionary's <unk>. In its
  history the other K words also have their back-off weights, by which p(· | h) sums to more than one. (Such models come
  from texts with <unk> for some words.)

`background.normalised` then makes every state a distribution again, which changes no ratio inside a state.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from fairseq_llrnn.automata.automaton import LONGEST_CHAIN, ROOT, Automaton
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import BOS, EOS, UNK, WordList
from fairseq_llrnn.files.text_lines import form_hint, warn_of_forms
from fairseq_llrnn.ngrams.ngrams import EMPTY, NGrams

NO_STATE = -1
OTHER_UNK = "<UNK>"


@dataclass(frozen=True)
class Converted:
    """An n-gram model on the symbols of a dictionary, not normalised yet (module docstring)."""

    automaton: Automaton
    log_root: np.ndarray  # (V,) log b₀
    histories: np.ndarray  # (Q − 1,) the n-gram of each state after the first
    notes: Counter[str]  # notes for the user with counts


def ngrams_to_automaton(model: NGrams, words: WordList, source: str) -> Converted:
    """Return the automaton of a model, and its root.

    Args:
        source: the model's name in errors, e.g. the file's path.

    Raises:
        DataError: the model has no </s>, no <unk> or none of the dictionary's other words, or too long histories.
    """
    if model.order > LONGEST_CHAIN:
        raise DataError(
            f"{source}: expected n-grams of at most {LONGEST_CHAIN} words, found some of {model.order}; estimate a "
            "model of a smaller order"
        )
    match = _match_words(model, words, source)
    notes: Counter[str] = Counter()
    log_root = np.full(len(words), -np.inf)
    shared = np.flatnonzero((match.symbols >= 0) & ~np.isneginf(model.log_probs[: len(model.words)]))
    log_root[match.symbols[shared]] = model.log_probs[shared]
    if len(match.lacking):
        share = model.log_probs[match.model_unk] - np.log(len(match.lacking) + 1)
        log_root[np.append(match.lacking, match.unk)] = share
        notes["words of the dictionary that the n-grams lack share the probability of <unk>"] += len(match.lacking)
    dropped = int(((match.symbols < 0) & ~np.isneginf(model.log_probs[: len(model.words)])).sum())
    if dropped:
        lacking = (word for word, symbol in zip(model.words, match.symbols, strict=True) if symbol < 0)
        warn_of_forms(source, lacking, words.symbols)
        notes["words of the n-grams are not in the dictionary; dropped with their n-grams"] += dropped
    automaton, histories = _build(model, match, words, log_root)
    num_dropped = len(model) - len(model.words) - automaton.num_arcs
    if num_dropped:
        notes["n-grams dropped: they contain such a word, or continue after </s>"] += num_dropped
    return Converted(automaton, log_root, histories, notes)


@dataclass(frozen=True)
class _Match:
    """The symbol of the dictionary for each word of the model."""

    symbols: np.ndarray  # (W,) id in the dictionary; −1: none. <s> has its id
    lacking: np.ndarray  # (K,) ids in the dictionary
    unk: int  # in the dictionary
    model_unk: int


def _match_words(model: NGrams, words: WordList, source: str) -> _Match:
    index = {symbol: i for i, symbol in enumerate(words.symbols)}
    predictable = words.predictable
    usable = predictable.copy()
    usable[index[BOS]] = True
    names = list(model.words)
    if UNK not in names and OTHER_UNK in names:
        names[names.index(OTHER_UNK)] = UNK
    for needed, fix in (
        (EOS, "estimate it from sentences, one a line, with <s> and </s> (KenLM and SRILM do so by themselves)"),
        (UNK, "estimate it with an open vocabulary (KenLM's lmplz always does, SRILM's ngram-count with -unk), or give "
              "<unk> a small probability by a line of the 1-grams, like `-6<TAB><unk>`"),
    ):  # fmt: skip
        if needed not in names:
            raise DataError(f"{source}: expected {needed} among the words of the n-grams, found none; {fix}")
    symbols = np.array([index.get(name, -1) for name in names], dtype=np.int64)
    symbols[symbols >= 0] = np.where(usable[symbols[symbols >= 0]], symbols[symbols >= 0], -1)
    covered = np.zeros(len(words), dtype=bool)
    covered[symbols[symbols >= 0]] = True
    ordinary = predictable & ~np.isin(np.arange(len(words)), [index[EOS], index[UNK]])
    if not (covered & ordinary).any():
        example = next((name for name in names if name not in (BOS, EOS, UNK)), UNK)
        raise DataError(
            f"{source}: expected n-grams of words of the dictionary, found no word of it (but e.g. {example!r}"
            f"{form_hint(example, words.symbols)}); "
            "give n-grams of the same language, tokenised and cased as the training text"
        )
    return _Match(symbols, np.flatnonzero(predictable & ~covered), index[UNK], names.index(UNK))


def _build(model: NGrams, match: _Match, words: WordList, log_root: np.ndarray) -> tuple[Automaton, np.ndarray]:
    """Return the automaton, and the n-gram of every state after the first."""
    bos, eos = words.symbols.index(BOS), words.symbols.index(EOS)
    usable = _usable(model, match.symbols, bos, eos)
    symbol = match.symbols[model.last]
    size, starts = len(model.words), model.starts

    is_continued = np.zeros(len(model), dtype=bool)
    is_continued[model.histories[size:][usable[size:]]] = True
    is_state = usable & (symbol != eos) & (is_continued | (model.back_offs != 0))
    is_state[starts[-2] :] = False
    state_of = np.where(is_state, np.cumsum(is_state), NO_STATE)  # 0 is the empty history
    # the state of the longest suffix, which may be the n-gram itself
    state = state_of.copy()
    for n in range(1, model.order + 1):
        span = slice(starts[n - 1], starts[n])
        shorter = model.suffixes[span]
        below = np.where(shorter == EMPTY, 0, state[shorter])
        state[span] = np.where(is_state[span], state_of[span], below)

    entries = np.flatnonzero(is_state)
    shorter = model.suffixes[entries]
    fail = np.where(shorter == EMPTY, 0, state[shorter])
    start = int(state[model.words.index(BOS)]) if BOS in model.words else 0

    root_next = np.full(len(words), -1, dtype=np.int64)
    unigrams = np.flatnonzero((match.symbols >= 0) & (match.symbols != bos))
    root_next[match.symbols[unigrams]] = state[unigrams]
    root_next[match.lacking] = state[match.model_unk]
    root_next[eos] = start
    root_next[np.isneginf(log_root)] = -1
    arcs = size + np.flatnonzero(usable[size:])
    nexts = np.where(symbol[arcs] == eos, start, state[arcs])
    arc_arrays = state_of[model.histories[arcs]], symbol[arcs], nexts, model.log_probs[arcs]
    automaton = replace(
        Automaton.from_arcs(len(words), len(entries) + 1, start, *arc_arrays),
        fail=np.concatenate([[ROOT], np.where(fail == 0, ROOT, fail)]),
        back_off=np.concatenate([[0.0], model.back_offs[entries]]),
        root_next=root_next,
        memory=model.order - 1,
    )
    return automaton, entries


def _usable(model: NGrams, symbols: np.ndarray, bos: int, eos: int) -> np.ndarray:
    """Return the n-grams of dictionary words with <s> only at the beginning and </s> only at the end: (E,) bool."""
    symbol = symbols[model.last]
    usable = symbol >= 0
    for n in range(2, model.order + 1):
        span = slice(model.starts[n - 1], model.starts[n])
        history = model.histories[span]
        usable[span] &= usable[history] & (symbol[history] != eos) & (symbol[span] != bos)
    return usable
