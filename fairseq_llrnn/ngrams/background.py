"""N-gram backgrounds from an ARPA file or a text: automata on a root b₀, with changes of their weights.

Sizes: V words of the dictionary, Q states, A arcs.

`mixed`, `tempered` and `normalised` change the weights of an automaton. All three keep arcs and states, and are exact
as automata with failure arcs. They take automata whose failures all end in ROOT, and log b₀ (V,) with a positive sum.

b(q, x) is the weight of x in state q, β the cost of failing, q' the failure state of q.

    mixed       b_λ(q, x) = λ b(q, x) + (1 − λ) b_λ(q', x)   on an arc;   (1 − λ + λ β(q)) b_λ(q', x)   elsewhere
    tempered    b_T(q, x) = b₀(x)^(1 − 1/T) b(q, x)^(1/T): log-linear interpolation with the unigram; b₀ is unchanged
    normalised  b(q, x) / Z(q),   Z(q) = Σ_arcs b(q, x) + β(q) (Z(q') − Σ_arcs b(q', x))

`mixed` is λ p(x | h) + (1 − λ) p(x) for histories of one word (bigrams), with the unigram b₀ as p(x). Longer histories
mix with the unigram through the shorter ones: direct interpolation would need the arcs of all shorter histories in
every state. λ = 1 changes nothing, λ = 0 is the unigram. Off the arcs the rule is the same with β(q) b_λ(q', x) instead
of b(q, x). The sum over all words then differs from one, by λβ times the change of the arcs' words in q'. `normalised`
corrects that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fairseq_llrnn import defaults
from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.ngrams.arpa import read_arpa
from fairseq_llrnn.ngrams.folds import check_room, folds_of, joined, same_states
from fairseq_llrnn.ngrams.kneser_ney import LARGEST_ORDER, estimate
from fairseq_llrnn.ngrams.ngrams import Sentences
from fairseq_llrnn.ngrams.to_automaton import Converted, ngrams_to_automaton

LITTLE = 1e-8  # smaller shares are summed word by word, since a difference would lose half of the digits


def mixed(automaton: Automaton, log_root: np.ndarray, weight: float) -> Automaton:
    """Interpolate every state with its failure state (module docstring); λ = `weight`."""
    if weight == 1.0:
        return automaton
    if weight == 0.0:
        return _without_arcs(automaton)
    log_weights, back_off = automaton.log_weights.copy(), automaton.back_off.copy()
    log_weight, log_rest = np.log(weight), np.log1p(-weight)
    back_off = np.logaddexp(log_rest, log_weight + back_off)
    result = replace(automaton, log_weights=log_weights, back_off=back_off)
    for _, arcs, below in _levels(result, log_root):
        log_weights[arcs] = np.logaddexp(log_weight + log_weights[arcs], log_rest + below)
    return result


def _without_arcs(automaton: Automaton) -> Automaton:
    """Return the unigram: one state with the weights of b₀."""
    return replace(
        automaton,
        starts=np.zeros_like(automaton.starts),
        offsets=np.zeros(2, dtype=np.int64),
        tokens=automaton.tokens[:0],
        nexts=automaton.nexts[:0],
        log_weights=automaton.log_weights[:0],
        fail=automaton.fail[:1],
        back_off=np.zeros(1),
        root_next=np.minimum(automaton.root_next, 0),
        memory=0,
    )


def tempered(automaton: Automaton, log_root: np.ndarray, temperature: float) -> Automaton:
    """Return b₀^(1 − 1/T) b^(1/T). The factor of the root applies to the arcs, and failing costs β^(1/T).

    Only the contribution of the histories is flattened. The unigram's shares of the words of a class are unchanged,
    since no network could correct them: they have no gradient.
    """
    if temperature == 1.0:
        return automaton
    log_weights = (1 - 1 / temperature) * log_root[automaton.tokens] + automaton.log_weights / temperature
    return replace(automaton, log_weights=log_weights, back_off=automaton.back_off / temperature)


def normalised(automaton: Automaton, log_root: np.ndarray) -> tuple[Automaton, np.ndarray]:
    """Return the automaton and its root, with distributions that sum to one in every state and in b₀."""
    totals, root_total = log_totals(automaton, log_root)
    below = np.where(automaton.fail >= 0, totals[np.maximum(automaton.fail, 0)], root_total)
    result = replace(
        automaton,
        log_weights=automaton.log_weights - totals[automaton.arc_states],
        back_off=automaton.back_off + below - totals,
    )
    return result, log_root - root_total


def log_totals(automaton: Automaton, log_root: np.ndarray) -> tuple[np.ndarray, float]:
    """Return log Σ_x b(q, x) of every state, (Q,), and of b₀."""
    root_total = float(np.logaddexp.reduce(log_root))
    totals = np.zeros(automaton.num_states)
    owner = automaton.arc_states
    for states, arcs, below in _levels(automaton, log_root):
        failing = automaton.fail[states]
        lower = np.where(failing >= 0, totals[np.maximum(failing, 0)], root_total)
        # the share of the failure state's weight that is not on words of arcs
        place = np.searchsorted(states, owner[arcs])
        remaining = 1.0 - np.bincount(place, np.exp(below - lower[place]), len(states))
        log_left = np.log(np.maximum(remaining, LITTLE))
        for i in np.flatnonzero(remaining < LITTLE):
            log_left[i] = _log_left(automaton, log_root, int(states[i])) - lower[i]
        failed = automaton.back_off[states] + lower + log_left
        arc_weights = automaton.log_weights[arcs]
        top = failed.copy()
        np.maximum.at(top, place, arc_weights)
        total = np.bincount(place, np.exp(arc_weights - top[place]), len(states)) + np.exp(failed - top)
        totals[states] = top + np.log(total)
    return totals, root_total


def _log_left(automaton: Automaton, log_root: np.ndarray, state: int) -> float:
    """Return log Σ b(q', x) over the words x without an arc of the state q, summed one by one."""
    weights, cost, chain = log_root.copy(), 0.0, []
    current = int(automaton.fail[state])
    while current >= 0:
        chain.append((current, cost))
        cost += float(automaton.back_off[current])
        current = int(automaton.fail[current])
    weights += cost
    for current, cost in reversed(chain):  # states with fewer failures overwrite others
        arcs = slice(automaton.offsets[current], automaton.offsets[current + 1])
        weights[automaton.tokens[arcs]] = cost + automaton.log_weights[arcs]
    weights[automaton.tokens[automaton.offsets[state] : automaton.offsets[state + 1]]] = -np.inf
    return float(np.logaddexp.reduce(weights))


def _levels(automaton: Automaton, log_root: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield states by their number of failures to ROOT, least first: states, their arcs, and log b(q', x) of the arcs'
    words.

    The last uses the weights at the time of the level's turn.
    """
    depth, owner = automaton.depth, automaton.arc_states
    for level in range(1, int(depth.max()) + 1):
        states = np.flatnonzero(depth == level)
        arcs = np.flatnonzero(depth[owner] == level)
        below = automaton.log_weights_at(automaton.fail[owner[arcs]], automaton.tokens[arcs], log_root)
        yield states, arcs, below


DEFAULT_FOLDS = defaults.FOLDS


@dataclass(frozen=True)
class NGramBackground:
    """An n-gram background of a prior. In every state, b is a distribution over the predictable words."""

    automaton: Automaton
    log_weights: np.ndarray  # (V,) float64, log b₀, the root; −inf for words that are never predicted
    notes: Counter[str]  # notes for the user with counts


def ngram_from_file(
    path: Path | str, words: WordList, weight: float = 1.0, temperature: float = 1.0
) -> NGramBackground:
    """Return the n-gram model of an ARPA file (.gz too), on the words of the dictionary.

    Args:
        weight: λ, the factor of each history's own probabilities against the next shorter one's; 0 is the unigram.
        temperature: T, b ∝ b₀^(1 − 1/T) p^(1/T). A large T leaves only the unigram.

    Raises:
        DataError: a malformed file, or one without </s>, <unk> or any word of the dictionary.
        OptionError: a weight or temperature out of range.
    """
    converted = ngrams_to_automaton(read_arpa(path), words, str(path))
    automaton, log_root = _change_weights(converted, weight, temperature)
    return NGramBackground(automaton, log_root, converted.notes)


def ngram_from_text(
    sentences: Sentences,
    words: WordList,
    order: int,
    folds: int = DEFAULT_FOLDS,
    weight: float = 1.0,
    temperature: float = 1.0,
    prune: tuple[int, ...] = (),
    unigrams: np.ndarray | None = None,
) -> NGramBackground:
    """Estimate a modified Kneser-Ney model of the order from sentences (`ngrams.read_sentences`).

    Args:
        folds: K; starts[1 + k] of the automaton begins a model without the sentences of fold k. 0: no folds, for a text
            that the network is not trained on.
        weight, temperature: as in `ngram_from_file`.
        prune: as in `kneser_ney.estimate`.
        unigrams: (V,) log b₀ of another text, which sums to one, instead of this text's own.

    Raises:
        DataError: sentences without words, too few for the folds, or too many n-grams for the memory.
        OptionError: an option out of range.
    """
    check_order(order)
    full = estimate(sentences, words, order, prune, unigrams)
    check_room(order, len(full), folds)
    converted = ngrams_to_automaton(full, words, f"ngram:{order}")
    automaton, log_root = _change_weights(converted, weight, temperature)
    notes = converted.notes
    if folds == 0 or automaton.num_states == 1:  # a unigram has no histories to hold out
        return NGramBackground(automaton, log_root, notes)
    fold_of = folds_of(sentences, folds)

    def parts() -> Iterator[tuple[Automaton, np.ndarray]]:
        for fold in tqdm(range(folds), "n-grams without each fold", leave=False, disable=None):
            others = sentences.chosen(fold_of != fold)
            if len(others.tokens) == 0:
                raise DataError(
                    f"ngram:{order}: expected text for {folds} folds, found {len(sentences):,} sentences, all of them "
                    f"with words in one fold; give more text, or write ngram({order}, folds=0) if the network is "
                    "trained on another one"
                )
            model = estimate(others, words, order, prune, unigrams=full.log_probs[: len(words)])
            part = ngrams_to_automaton(model, words, f"ngram:{order}")
            places = same_states(model, part.histories, full, converted.histories)
            yield _change_weights(part, weight, temperature)[0], places

    return NGramBackground(joined(automaton, parts()), log_root, notes)


def _change_weights(converted: Converted, weight: float, temperature: float) -> tuple[Automaton, np.ndarray]:
    automaton = tempered(mixed(converted.automaton, converted.log_root, weight), converted.log_root, temperature)
    return normalised(automaton, converted.log_root)


def check_order(order: int) -> None:
    """Raise OptionError for an order out of range."""
    if not 1 <= order <= LARGEST_ORDER:
        raise OptionError(
            f"--background ngram:{order}: expected an order from 1 to {LARGEST_ORDER}; longer n-grams can come from an "
            "ARPA file, as ngram:FILE"
        )
