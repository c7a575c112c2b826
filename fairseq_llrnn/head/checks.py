"""Checks of a head's inputs and weights.

Sizes: B batch, T time, n bytes of a fingerprint.

Weights raise an error if they are not finite, or if they were trained with another prior or with other modules.
Targets raise an error if the background forbids them, because their loss would be infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import UNK, plain
from fairseq_llrnn.files.numbers import LARGEST_PARAMETER
from fairseq_llrnn.output.class_source import Head
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.registry import lost

MOST_BYTES = 64  # of a fingerprint in an untrusted checkpoint; those of this package have 32


def check_numbers(weights: Mapping[str, object], checkpoint: str = "the checkpoint") -> None:
    """Raise DataError if a weight is not finite, or too large to compute with. `weights` maps names to tensors."""
    for name, weight in weights.items():
        if not isinstance(weight, Tensor) or not weight.is_floating_point() or weight.numel() == 0:
            continue
        largest = float(weight.abs().amax())
        if not largest <= LARGEST_PARAMETER:  # NaN is not
            finite = bool(weight.isfinite().all())
            value = f"{largest:.3g}" if finite else "NaN or infinity"
            what = f"weights up to {LARGEST_PARAMETER:,.0f}" if finite else "finite weights"
            raise DataError(
                f"{checkpoint}: expected {what}, found {value} in {name}: the training diverged; use an earlier "
                "checkpoint, and train with a smaller --lr or with --clip-norm"
            )


def check_names(
    head: nn.Module, names: Sequence[str], weights: Mapping[str, object], prefix: str, options: Mapping[str, str]
) -> None:
    """Raise OptionError if weights were trained with other modules than the head has.

    Args:
        names: of the head's modules.
        prefix: of the head's weights in `weights`; ends in a dot.
        options: the first part of the message for a missing module, by the module's name.
    """
    saved = {name.removeprefix(prefix).split(".")[0] for name in weights if name.startswith(prefix)}
    have = {name.split(".")[0] for name in head.state_dict()}
    neutral = {"embedding"}  # tied, it may have no weights of its own; torch reports missing weights
    for name in sorted(saved - have - neutral):
        if reason := lost(name):
            raise OptionError(f"the checkpoint was trained with `{name}`: {reason}")
        expected = options.get(name, f"{name}: expected this option")
        raise OptionError(f"{expected}, with which the checkpoint was trained; add it, with the same sizes")
    for name in names:
        if saved and name in have - saved - neutral:
            option_name = options.get(name, name).partition(":")[0]
            raise OptionError(f"{option_name}: expected none, as the checkpoint was trained without it; leave it out")


def fingerprint_of(prior: Prior) -> Tensor:
    """Return the bytes of a prior's fingerprint as floats: (n,). Averaging equal floats over checkpoints keeps them."""
    return torch.tensor(list(bytes.fromhex(prior.fingerprint)), dtype=torch.float32)


def check_fingerprint(expected: Tensor, saved: object, folder: str | None, option_name: str = "prior") -> None:
    """Raise PriorError if a checkpoint has the fingerprint of another prior. fairseq reports weights without one.

    Args:
        saved: the fingerprint in the checkpoint, or None if it has none.
        folder: the folder of the head's prior, for the message.
        option_name: the kind of prior, as in its command-line option.

    Raises:
        DataError: `saved` is not a fingerprint (`in_hex`).
    """
    if saved is not None and in_hex(saved) != in_hex(expected):
        raise PriorError(
            f"the checkpoint was trained with another {option_name} than {folder or 'the one given'} (fingerprints "
            f"{in_hex(saved)[:12]}… and {in_hex(expected)[:12]}…); to train from scratch, set another --save-dir; to "
            f"use the checkpoint, pass the {option_name} of its training with --{option_name.replace(' ', '-')}"
        )


def in_hex(fingerprint: object, checkpoint: str = "the checkpoint") -> str:
    """Return a checkpoint's fingerprint (n,) in the form of `Prior.fingerprint`.

    Raises:
        DataError: not a vector of at most MOST_BYTES numbers.
    """
    if not isinstance(fingerprint, Tensor) or fingerprint.dim() != 1 or fingerprint.numel() > MOST_BYTES:
        kind = type(fingerprint).__name__
        shown = f"the shape {tuple(fingerprint.shape)}" if isinstance(fingerprint, Tensor) else kind
        raise DataError(
            f"{checkpoint}: expected up to {MOST_BYTES} numbers as the fingerprint of its prior, found "
            f"{shown}; use a checkpoint that fairseq saved"
        )
    return "".join(f"{byte:02x}" for byte in fingerprint.float().round().long().tolist())


FIX_ZERO_MASS = "build the prior with a background that covers it, e.g. --background unigram"
LEAVE_OUT = "leave such sentences out (LogLinearHead.possible finds them), or " + FIX_ZERO_MASS


@dataclass(frozen=True)
class Forbidden:
    """The first word without mass."""

    row: int  # from 0
    position: int  # from 1
    token: int
    around: Tensor  # its neighbouring tokens, without padding
    count: int  # of words without mass


def first_forbidden(log_prob: Tensor, words: Tensor, pad: int) -> Forbidden | None:
    """Return the first of the words (B, T) with log_prob (B, T) −inf, padding excluded, or None if all have mass."""
    impossible = torch.isneginf(log_prob) & words.ne(pad)
    if torch.compiler.is_compiling() or not bool(impossible.any()):  # compiled, the loss is inf
        return None
    row, position = impossible.nonzero()[0].tolist()
    near = words[row, max(0, position - 5) : position + 4]
    return Forbidden(row, position + 1, int(words[row, position]), near[near.ne(pad)], int(impossible.sum()))


def check_token_ids(head: Head, **tokens: Tensor) -> None:
    """Raise DataError if a token is the id of no word or string. `tokens` maps argument names to tensors.

    Negative ids would count from the end of the dictionary, too large ones as `<unk>`. torch's own losses ignore −100.
    A compiled loss skips this check.
    """
    if torch.compiler.is_compiling():
        return
    end = len(head.prior.session.target.symbols)
    for name, numbers in tokens.items():
        wrong = (numbers < 0) | (numbers >= end)
        if bool(wrong.any()):
            first = int(numbers[wrong][0])
            raise DataError(
                f"{name}: expected token ids from 0 to {end - 1:,}, found {first:,}; "
                + (
                    f"to leave positions out of the loss, set their targets to padding, head.pad ({head.pad})"
                    if first < 0
                    else "encode texts with head.encode, or with the dictionary of the prior"
                )
            )


def check_source_ids(prior: Prior, source: Tensor | None, tokens: Tensor | None = None) -> None:
    """Raise DataError if a source token, marked or not, is the id of no word or string.

    Strings of sources have ids in one prior object only. A prior that is read again has none of them.

    Args:
        tokens: of the target. If `source` is None, they must be words of the dictionary.
    """
    if source is None:
        if tokens is not None and bool((tokens >= len(prior.symbols)).any()):
            raise DataError(
                "LogLinearHead: the tokens contain strings of source sentences, and need `source`, (B, L); pass it"
            )
        return
    end = len(prior.session.source.symbols)
    wrong = (plain(source) >= end) | (source < 0)
    if bool(wrong.any()):
        first = int(source[wrong][0])
        raise DataError(
            f"source: expected ids of source words, from 0 to {end - 1:,}, found "
            f"{first if first < 0 else plain(first):,}; encode sources with encode_source of a head that has this "
            "prior object"
        )


def check_rows(shape: Sequence[int], named: str, what: str, **tensors: Tensor | None) -> None:
    """Raise DataError for an empty batch, or a tensor without one row per item.

    Args:
        shape: of the batch. named: the expected shape, for the message. what: the items, e.g. "sentences".
        tensors: tensors by argument name; None is allowed.
    """
    if min(shape) < 1:
        raise DataError(
            f"LogLinearHead: expected at least one of {named}, found {tuple(shape)}; leave empty batches out (an "
            "empty sentence is `</s>` alone)"
        )
    for name, tensor in tensors.items():
        if tensor is not None and len(tensor) != shape[0]:
            raise DataError(
                f"{name}: expected a row for each of {shape[0]:,} {what}, found {len(tensor):,}; repeat or "
                "select its rows like these"
            )


def check_allowed(
    head: Head, log_prob: Tensor, targets: Tensor, ids: Tensor | None = None, fix: str = FIX_ZERO_MASS
) -> None:
    """Raise DataError for the first target (B, T) with log_prob (B, T) −inf, padding excluded: its loss is infinite.

    Args:
        ids: (B,) indices of the samples, from zero; ignored if None or of another length.
        fix: the last part of the message.
    """
    forbidden = first_forbidden(log_prob, targets, head.pad)
    if forbidden is None:
        return
    symbols, has_ids = head.prior.session.target.symbols, ids is not None and len(ids) == len(targets)
    place = f"at position {forbidden.position} of sample {int(ids[forbidden.row]) + 1}, " if has_ids else ""  # type: ignore[index]
    words = [symbols[token] if token < len(symbols) else UNK for token in (forbidden.token, *forbidden.around.tolist())]
    around = [word for word, token in zip(words[1:], forbidden.around.tolist(), strict=True) if token != head.eos]
    raise DataError(
        f"the background gives word {words[0]!r} no mass, but it is the target {place}in {' '.join(around)!r} "
        f"({forbidden.count} such targets in this batch); {fix}"
    )
