"""Whether a model of n-grams and those without each fold go into memory: said before hours of work are lost.

Sizes: E n-grams, K folds.

Cross-fitted n-grams for the text that they were estimated from: K folds of sentences, K + 1 models in one automaton.

Sizes: K folds, n sentences, T words, B batch, Q states of one model, V symbols.

A background estimated on the very text that a network trains on is far too sure of itself there, and the network
learns to trust it. So each sentence is trained with a model that has not seen its fold (cross-fitting). Which fold a
sentence is in depends on its words alone: wherever it comes from, and in whatever order, it is the same; equal
sentences go together.

The fold is a hash: Σ_i mix(C₁ · token + C₂ · place) over the words without <s>, </s> and <pad>, places counted from 1
in the sentence, in wrapping 64-bit integers; then mixed again, its upper bits modulo K. numpy and torch agree bit for
bit.
`mix` is the finaliser of SplitMix64 (Steele, Lea & Flood 2014) with one shift less.

All models stand on the same b₀, and have the same states in the same order: state q of fold k is (1 + k) · Q + q. So
`root_next` serves all of them (automata/automaton.py). A fold's model has a subset of the n-grams of the full
one; a state that it lacks gives what b₀ gives. After </s> all continue in starts[0]: training with folds sets the
start of the next sentence.
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


# An arc of the automaton: token, state after it, weight, 8 bytes each
BYTES_PER_NGRAM = 24
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # versions 2 and 1


def memory_limit() -> int:
    """Bytes that this process may have: the fewest of its machine, its container and `ulimit`."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # another system, or the word `max`
            limits.append(int(Path(path).read_text(encoding="ascii")))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        limits += [] if soft == resource.RLIM_INFINITY else [soft]
    return min(limits)


def check_room(order: int, ngrams: int, folds: int) -> None:
    """Raise DataError where what is to come of a model has no room: of the whole text, of the folds, and all joined.

    Args:
        ngrams: E of the whole text. folds: K.
    """
    needed, there = BYTES_PER_NGRAM * ngrams * (1 + 2 * folds), memory_limit()
    if needed > there:
        beside = f" and of {folds} folds" if folds else ""
        raise DataError(
            f"ngram:{order}: {ngrams:,} n-grams{beside} need {needed / 1e9:,.1f} GB, found {there / 1e9:,.1f} GB that "
            f"this process may have; leave those out that come seldom, as in ngram({order}, "
            f"prune=[{', '.join('01345'[:order])}]), say folds=0 if the network is trained on another text, or give a "
            "smaller ARPA file as ngram:FILE"
        )


Integers = TypeVar("Integers", np.ndarray, "Tensor")

LARGEST_FOLDS = 100


# signed numbers of 64 bits
TOKEN_FACTOR, PLACE_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64), 0xD1B54A32D192ED03 - (1 << 64)
MIX_FACTOR = 0xBF58476D1CE4E5B9 - (1 << 64)
UPPER_BITS = (1 << 31) - 1


def _mixed(numbers: Integers) -> Integers:
    """Every bit of the result depends on all of the number's; `>>` keeps the sign in numpy and torch alike."""
    numbers = (numbers ^ (numbers >> 30)) * MIX_FACTOR
    return numbers ^ (numbers >> 27)


def _word_hashes(tokens: Integers, places: Integers) -> Integers:
    return _mixed(tokens * TOKEN_FACTOR + places * PLACE_FACTOR)


def _folds(sums: Integers, num_folds: int) -> Integers:
    return ((_mixed(sums) >> 32) & UPPER_BITS) % num_folds


def folds_of(sentences: Sentences, num_folds: int) -> np.ndarray:
    """The fold of every sentence: (n,) int64 from 0 to K − 1."""
    ends = sentences.lengths.cumsum()
    places = np.arange(len(sentences.tokens)) - np.repeat(ends - sentences.lengths, sentences.lengths) + 1
    # sums that wrap around have differences that do
    before = np.concatenate([[0], _word_hashes(sentences.tokens.astype(np.int64), places).cumsum()])
    return _folds(before[ends] - before[ends - sentences.lengths], num_folds)


def folds_per_position(text: Tensor, eos: int, pad: int, num_folds: int) -> Tensor:
    """The fold of the sentence that every token of a batch is of: (B, T) -> (B, T) int64 from 0 to K − 1.

    `text` has no start symbol. </s> is of the sentence that it ends; a row may hold several. Sentences that the row
    cuts have another hash than whole ones.
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
    """Which state of the full model is which of the fold's: (Q_k,).

    Args:
        of_fold, of_full: the n-grams that the states after the first are histories of, (Q_k − 1,), (Q − 1,).
    """
    same = np.arange(len(fold))  # the unigrams are the words, in both of them
    for n in range(2, fold.order + 1):
        span = slice(fold.starts[n - 1], fold.starts[n])
        same[span] = full.find(same[fold.histories[span]], fold.last[span])
    state_of = np.zeros(len(full), dtype=np.int64)
    state_of[of_full] = np.arange(1, len(of_full) + 1)
    return np.concatenate([[0], state_of[same[of_fold]]])


def joined(full: Automaton, folds: Iterable[tuple[Automaton, np.ndarray]]) -> Automaton:
    """One automaton from the full model and its folds.

    Args:
        folds: the model of each fold, and which state of the full one each of its states is, (Q_k,); they are large, so
            that one after the other is made.
    """
    size = full.num_states
    parts = [full] + [_laid_out(fold, places, size) for fold, places in folds]
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


def _laid_out(fold: Automaton, places: np.ndarray, size: int) -> Automaton:
    """A fold's model with the states of the full one; those that it lacks fail to ROOT."""
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
