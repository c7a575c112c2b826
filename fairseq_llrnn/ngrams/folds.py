"""Cross-fitted n-grams for the text that they were estimated from: K folds of sentences, K + 1 models in one automaton.

Sizes: E n-grams, K folds, n sentences, T words, B batch, Q states of one model, V symbols.

A background estimated on the text that a network trains on is overconfident there, and the network learns to rely on
it. So training uses, for each sentence, a model that was estimated without its fold (cross-fitting). The fold of a
sentence depends only on its words, not on its origin or the order. Equal sentences are in the same fold.

The fold is a hash: Σ_i mix(C₁ · token + C₂ · place) over the words without <s>, </s> and <pad>, places counted from 1
in the sentence, in wrapping 64-bit integers; then mixed again, its upper bits modulo K. numpy and torch agree bit for
bit. `mix` is the finaliser of SplitMix64 (Steele, Lea & Flood 2014) with one shift less.

All models share b₀, and have the same states in the same order: state q of fold k is (1 + k) · Q + q. So they share
`root_next` (automata/automaton.py). A fold's model has a subset of the n-grams of the full one. In a state that it
lacks, it gives b₀. After </s> all continue in starts[0]: training with folds sets the start of the next sentence.

`check_room` compares the memory of the model and its folds with the limit before they are estimated.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairseq_llrnn.automata.automaton import END, ROOT, Automaton
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.ngrams.ngrams import NGrams, Sentences

if TYPE_CHECKING:
    from torch import Tensor


# an arc of the automaton: token, next state, weight, 8 bytes each
BYTES_PER_NGRAM = 24
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # versions 2 and 1


def memory_limit() -> int:
    """Return the bytes that this process may use: the least limit of its machine, its container and `ulimit`."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # another system, or the word `max`
            limits.append(int(Path(path).read_text(encoding="ascii")))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        limits += [] if soft == resource.RLIM_INFINITY else [soft]
    return min(limits)


def check_room(order: int, ngrams: int, folds: int) -> None:
    """Raise DataError if the model needs more memory than the limit: of the whole text, of the folds, and all joined.

    Args:
        ngrams: E of the whole text.
        folds: K.
    """
    needed, limit = BYTES_PER_NGRAM * ngrams * (1 + 2 * folds), memory_limit()
    if needed > limit:
        fold_text = f" and those of {folds} folds" if folds else ""
        raise DataError(
            f"ngram:{order}: {ngrams:,} n-grams{fold_text} need {needed / 1e9:,.1f} GB, found a limit of "
            f"{limit / 1e9:,.1f} GB for this process; leave out rare ones, as in ngram({order}, "
            f"prune=[{', '.join('01345'[:order])}]), set folds=0 if the network is trained on another text, or give a "
            "smaller ARPA file as ngram:FILE"
        )


Integers = TypeVar("Integers", np.ndarray, "Tensor")

LARGEST_FOLDS = 100


# signed numbers of 64 bits
TOKEN_FACTOR, PLACE_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64), 0xD1B54A32D192ED03 - (1 << 64)
MIX_FACTOR = 0xBF58476D1CE4E5B9 - (1 << 64)
UPPER_BITS = (1 << 31) - 1


def _mix(numbers: Integers) -> Integers:
    """Mix the bits: each bit of the result depends on all of the number's. `>>` keeps the sign in numpy and torch."""
    numbers = (numbers ^ (numbers >> 30)) * MIX_FACTOR
    return numbers ^ (numbers >> 27)


def _word_hashes(tokens: Integers, places: Integers) -> Integers:
    return _mix(tokens * TOKEN_FACTOR + places * PLACE_FACTOR)


def _folds(sums: Integers, num_folds: int) -> Integers:
    return ((_mix(sums) >> 32) & UPPER_BITS) % num_folds


def folds_of(sentences: Sentences, num_folds: int) -> np.ndarray:
    """Return the fold of every sentence: (n,) int64 from 0 to K − 1."""
    ends = sentences.lengths.cumsum()
    places = np.arange(len(sentences.tokens)) - np.repeat(ends - sentences.lengths, sentences.lengths) + 1
    # differences of wrapped sums wrap in the same way
    sums = np.concatenate([[0], _word_hashes(sentences.tokens.astype(np.int64), places).cumsum()])
    return _folds(sums[ends] - sums[ends - sentences.lengths], num_folds)


def folds_per_position(text: Tensor, eos: int, pad: int, num_folds: int) -> Tensor:
    """Return the fold of each token's sentence in a batch: (B, T) -> (B, T) int64 from 0 to K − 1.

    `text` has no start symbol. </s> belongs to the sentence before it. A row may contain several sentences. Sentences
    that are cut by the row have another hash than whole ones.
    """
    import torch

    words = (text != eos) & (text != pad)
    # shape: (B, T), the sentence of each token, counted in its row
    sentence = torch.nn.functional.pad((text == eos).long().cumsum(1)[:, :-1], (1, 0))
    count = words.long().cumsum(1)
    before = torch.zeros_like(text).scatter_reduce(1, sentence, count - words.long(), "amin", include_self=False)
    hashes = _word_hashes(text, count - before.gather(1, sentence)).masked_fill(~words, 0)
    sums = torch.zeros_like(text).scatter_add(1, sentence, hashes)
    return _folds(sums, num_folds).gather(1, sentence)


def same_states(fold: NGrams, of_fold: np.ndarray, full: NGrams, of_full: np.ndarray) -> np.ndarray:
    """Return the state of the full model for each state of the fold's: (Q_k,).

    Args:
        of_fold, of_full: the n-grams that the states after the first are histories of, (Q_k − 1,), (Q − 1,).
    """
    full_ngram = np.arange(len(fold))  # the unigrams are the words, in both of them
    for n in range(2, fold.order + 1):
        span = slice(fold.starts[n - 1], fold.starts[n])
        full_ngram[span] = full.find(full_ngram[fold.histories[span]], fold.last[span])
    state_of = np.zeros(len(full), dtype=np.int64)
    state_of[of_full] = np.arange(1, len(of_full) + 1)
    return np.concatenate([[0], state_of[full_ngram[of_fold]]])


def joined(full: Automaton, folds: Iterable[tuple[Automaton, np.ndarray]]) -> Automaton:
    """Join the full model and its folds into one automaton.

    Args:
        folds: for each fold, its model, and the state of the full model for each of its states, (Q_k,). They are large
            and are made one by one.
    """
    size = full.num_states
    parts = [full] + [_align_states(fold, places, size) for fold, places in folds]
    tokens = np.concatenate([part.tokens for part in parts])
    nexts = np.concatenate([part.nexts + k * size for k, part in enumerate(parts)])
    return replace(
        full,
        starts=np.array([part.starts[0] + k * size for k, part in enumerate(parts)], dtype=np.int64),
        offsets=np.concatenate([[0], np.concatenate([np.diff(part.offsets) for part in parts]).cumsum()]),
        tokens=tokens,
        nexts=np.where(tokens == END, full.starts[0], nexts),
        log_weights=np.concatenate([part.log_weights for part in parts]),
        fail=np.concatenate([np.where(part.fail >= 0, part.fail + k * size, ROOT) for k, part in enumerate(parts)]),
        back_off=np.concatenate([part.back_off for part in parts]),
    )


def _align_states(fold: Automaton, places: np.ndarray, size: int) -> Automaton:
    """Return a fold's model with the states of the full one. Missing states fail to ROOT."""
    counts, back_off, fail = np.zeros(size, dtype=np.int64), np.zeros(size), np.full(size, ROOT, dtype=np.int64)
    counts[places] = np.diff(fold.offsets)
    back_off[places] = fold.back_off
    fail[places] = np.where(fold.fail >= 0, places[np.maximum(fold.fail, 0)], ROOT)  # places may be one
    order = np.argsort(places[fold.arc_states], kind="stable")
    return replace(
        fold,
        starts=places[fold.starts],
        offsets=np.concatenate([[0], counts.cumsum()]),
        tokens=fold.tokens[order],
        nexts=places[fold.nexts[order]],
        log_weights=fold.log_weights[order],
        fail=fail,
        back_off=back_off,
    )
