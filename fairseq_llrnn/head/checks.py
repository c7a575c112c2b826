"""What a head refuses: weights of a checkpoint that it cannot have, and forbidden targets.

Sizes: B batch, T time, n numbers of a fingerprint.

Weights are refused that are no numbers to compute with, or that were trained beside another prior or with other
modules. Targets that the background forbids would have an infinite loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import UNK, plain
from fairseq_llrnn.files.numbers import LARGEST_PARAMETER
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.registry import lost

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead


MOST_BYTES = 64  # of a fingerprint in a checkpoint, which is anybody's; ours have 32


def check_numbers(weights: Mapping[str, object], checkpoint: str = "the checkpoint") -> None:
    """Raise DataError for weights, by name, with a number that is not finite, or too large to compute with."""
    for name, weight in weights.items():
        if not isinstance(weight, Tensor) or not weight.is_floating_point() or weight.numel() == 0:
            continue
        largest = float(weight.abs().amax())
        if not largest <= LARGEST_PARAMETER:  # NaN is not
            finite = bool(weight.isfinite().all())
            value = f"{largest:.3g}" if finite else "NaN or infinity"
            what = f"weights up to {LARGEST_PARAMETER:,.0f}" if finite else "finite weights"
            raise DataError(
                f"{checkpoint}: expected {what}, found {value} in {name}: its training went astray; use an earlier "
                "checkpoint, and train with a smaller --lr or with --clip-norm"
            )


def check_names(
    head: nn.Module, names: Sequence[str], weights: Mapping[str, object], prefix: str, options: Mapping[str, str]
) -> None:
    """Raise OptionError where weights were trained with other modules than those that a head was given.

    Args:
        names: of the head's modules.
        prefix: of the head's names, ends in a dot.
        options: what messages say that they expected.
    """
    saved = {name.removeprefix(prefix).split(".")[0] for name in weights if name.startswith(prefix)}
    have = {name.split(".")[0] for name in head.state_dict()}
    neutral = {"embedding"}  # tied, it may have no weights of its own; torch says which are missing
    for name in sorted(saved - have - neutral):
        if reason := lost(name):
            raise OptionError(f"the checkpoint was trained with `{name}`: {reason}")
        expected = options.get(name, f"{name}: expected this option")
        raise OptionError(f"{expected}, with which the checkpoint was trained; give it, with the same sizes")
    for name in names:
        if saved and name in have - saved - neutral:
            option_name = options.get(name, name).partition(":")[0]
            raise OptionError(f"{option_name}: expected none, as the checkpoint was trained without it; leave it out")


def fingerprint_of(prior: Prior) -> Tensor:
    """Its bytes for a checkpoint, as floating point: so averages of checkpoints and of updates are the same again."""
    return torch.tensor(list(bytes.fromhex(prior.fingerprint)), dtype=torch.float32)


def check_fingerprint(expected: Tensor, saved: object, folder: str | None, option_name: str = "prior") -> None:
    """Raise PriorError where a checkpoint's is that of another prior. fairseq refuses weights that have none.

    Args:
        saved: what the checkpoint holds; None: nothing.
        folder: where the own prior was read, by its option or because it is the data directory's.
        option_name: the kind of prior, by which its option is called.

    Raises:
        DataError: as of `in_hex`.
    """
    if saved is not None and in_hex(saved) != in_hex(expected):
        raise PriorError(
            f"the checkpoint was trained with another {option_name} than {folder or 'the one given'} (fingerprints "
            f"{in_hex(saved)[:12]}… and {in_hex(expected)[:12]}…); to train anew, say another --save-dir; to use the "
            f"checkpoint, give the {option_name} of its training with --{option_name.replace(' ', '-')}"
        )


def in_hex(fingerprint: object, checkpoint: str = "the checkpoint") -> str:
    """What a checkpoint holds as its fingerprint, (n,), as `Prior.fingerprint` has it.

    Raises:
        DataError: no short row of numbers.
    """
    if not isinstance(fingerprint, Tensor) or fingerprint.dim() != 1 or fingerprint.numel() > MOST_BYTES:
        kind = type(fingerprint).__name__
        shown = f"the shape {tuple(fingerprint.shape)}" if isinstance(fingerprint, Tensor) else kind
        raise DataError(
            f"{checkpoint}: expected up to {MOST_BYTES} numbers as the fingerprint of its prior, found "
            f"{shown}; use one that fairseq saved"
        )
    return "".join(f"{byte:02x}" for byte in fingerprint.float().round().long().tolist())


FIX_ZERO_MASS = "build the prior with a background that covers it, e.g. --background unigram"
LEAVE_OUT = "leave such sentences out (LogLinearHead.possible finds them), or " + FIX_ZERO_MASS


@dataclass(frozen=True)
class Forbidden:
    """The first of some words without mass."""

    row: int  # from 0
    position: int  # from 1
    token: int
    around: Tensor  # the tokens near it, without padding
    many: int  # how many there are


def first_forbidden(log_prob: Tensor, words: Tensor, pad: int) -> Forbidden | None:
    """The first of the words (B, T), but padding, whose log_prob (B, T) is −inf; None where there is none."""
    impossible = torch.isneginf(log_prob) & words.ne(pad)
    if torch.compiler.is_compiling() or not bool(impossible.any()):  # compiled, it is a loss of inf
        return None
    row, position = impossible.nonzero()[0].tolist()
    near = words[row, max(0, position - 5) : position + 4]
    return Forbidden(row, position + 1, int(words[row, position]), near[near.ne(pad)], int(impossible.sum()))


def check_token_ids(head: LogLinearHead, **tokens: Tensor) -> None:
    """Raise DataError for a token, of some by what they are called, that is the number of no word or string.

    One below 0 would be read as a word from the dictionary's end, and one beyond all words as `<unk>`. torch's own
    losses leave −100 out. As of targets without mass, nobody looks in a compiled loss.
    """
    if torch.compiler.is_compiling():
        return
    end = len(head.prior.session.target.symbols)
    for name, numbers in tokens.items():
        wrong = (numbers < 0) | (numbers >= end)
        if bool(wrong.any()):
            first = int(numbers[wrong][0])
            raise DataError(
                f"{name}: expected numbers of words, from 0 to {end - 1:,}, found {first:,}; "
                + (
                    f"what is to be left out of the loss is padding, head.pad ({head.pad})"
                    if first < 0
                    else "number them by head.encode, or with the dictionary that the prior was built for"
                )
            )


def check_source_ids(prior: Prior, source: Tensor) -> None:
    """Raise DataError for a source token, with a mark or without, that is the number of no word or string.

    Strings that a source offers have numbers in one prior object only. A prior that is read again has none of them.
    """
    end = len(prior.session.source.symbols)
    wrong = (plain(source) >= end) | (source < 0)
    if bool(wrong.any()):
        raise DataError(
            f"source: expected numbers of source words, from 0 to {end - 1:,}, found {int(plain(source)[wrong][0]):,}; "
            "number the sources by encode_source of a head with this very prior object"
        )


def check_rows(shape: Sequence[int], named: str, what: str, **tensors: Tensor | None) -> None:
    """Raise DataError for an empty batch, or for a tensor that has not one row for each of `what`.

    Args:
        shape: of the batch. named: how messages write what it is, with its shape. tensors: tensors by their names.
    """
    if min(shape) < 1:
        raise DataError(
            f"LogLinearHead: expected {named}, of one at least, found {tuple(shape)}; leave empty batches out (an "
            "empty sentence is `</s>` alone)"
        )
    for name, tensor in tensors.items():
        if tensor is not None and len(tensor) != shape[0]:
            raise DataError(
                f"{name}: expected a row for each of {shape[0]:,} {what}, found {len(tensor):,}; repeat, or choose, "
                "them as these are"
            )


def check_allowed(
    head: LogLinearHead, log_prob: Tensor, targets: Tensor, ids: Tensor | None = None, fix: str = FIX_ZERO_MASS
) -> None:
    """Raise DataError for the first target, (B, T), but padding, whose log_prob (B, T) is −inf: its loss is infinite.

    Args:
        ids: (B,) the samples' numbers, from zero; None, or another length, where they are not known. fix: what to do.
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
        f"({forbidden.many} such targets in this batch); {fix}"
    )
