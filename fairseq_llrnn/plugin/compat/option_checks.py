"""Check values of fairseq's own options that would end in a stack trace or an endless loop.

A task of ours gets the parser of the command line that names it. The parsed values are checked before fairseq uses
them. Checks that need data or a model are in tasks/task.py. fairseq checks all other values itself.
"""

from __future__ import annotations

import ast
import math
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

import torch

from fairseq_llrnn.argument_errors import exit_with_argument_error
from fairseq_llrnn.errors import OptionError, check_unused_options, did_you_mean
from fairseq_llrnn.files.binary_text import missing_split, splits_in
from fairseq_llrnn.files.numbers import SCORE_TEMPERATURES
from fairseq_llrnn.plugin.compat.checkpoint_errors import LAST

Check = tuple[Callable[[Any], bool], str]  # whether a value is valid, and a description of valid values


def _at_least(least: int) -> Check:
    return lambda value: _whole(value) >= least, f"a number of at least {least}"


def _between(least: float, most: float) -> Check:
    return lambda value: least <= value <= most, f"a number from {least:g} to {most:g}"


def _whole(value: float | str) -> float:
    """Return the number, or nan if it is none. fairseq's parser leaves some as text, such as --max-tokens-valid."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() else math.nan
    return value


def _each(check: Check) -> Check:
    return lambda values: all(map(check[0], values if isinstance(values, list) else [values])), check[1]


def _are_files(paths: str) -> bool:
    """Return whether all paths are files, separated as in fairseq."""
    return all(map(os.path.isfile, paths.split(os.pathsep)))


def _is_dictionary(text: object) -> bool:
    try:
        return isinstance(ast.literal_eval(text) if isinstance(text, str) else text, dict)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False


def _has_folder(path: str) -> bool:
    """Return whether a file or folder of that name exists or can be created."""
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    return os.path.isdir(above)


POSITIVE, NOT_NEGATIVE = _at_least(1), _at_least(0)
NOT_BELOW_ZERO: Check = (lambda value: math.isfinite(value) and value >= 0, "a finite number of at least 0")
FILE: Check = (os.path.isfile, "an existing file")

CHECKS: dict[str, Check] = {
    # search
    "beam": POSITIVE,
    "nbest": POSITIVE,
    "max_len_a": NOT_BELOW_ZERO,
    "max_len_b": NOT_NEGATIVE,
    "min_len": NOT_NEGATIVE,
    "lenpen": _between(-50, 50),  # an exponent of the length
    "unkpen": _between(-1e6, 1e6),  # an addend of log-probabilities
    "temperature": _between(*SCORE_TEMPERATURES),
    "path": (_are_files, f"existing checkpoints (files, not folders), several separated by {os.pathsep}"),
    "lm_path": FILE,
    "input": (
        lambda path: path == "-" or os.path.exists(path) and not os.path.isdir(path),
        "an existing file, or - for stdin",
    ),
    "model_overrides": (_is_dictionary, "a dictionary of Python, such as \"{'data': 'folder'}\""),
    "context_window": _between(0, 10_000),  # of eval-lm; each block is padded to the window
    # batches
    "max_tokens": POSITIVE,
    "max_tokens_valid": POSITIVE,
    "batch_size": POSITIVE,
    "batch_size_valid": POSITIVE,
    "required_batch_size_multiple": POSITIVE,
    "tokens_per_sample": POSITIVE,
    # training
    "lr": _each(NOT_BELOW_ZERO),  # with 0, the model does not change
    "update_freq": _each(POSITIVE),
    "clip_norm": NOT_BELOW_ZERO,
    "save_dir": (_has_folder, "a folder, or a name for a new one in a folder"),
    # without these files, fairseq would start from scratch without a message
    "finetune_from_model": FILE,
    "continue_once": FILE,
    "restore_file": (lambda path: path == LAST or os.path.isfile(path), "an existing checkpoint"),
}


FILES_OF_PARTS = ("path", "restore_file")  # with a suffix, fairseq opens model-s.pt for model.pt
USUAL_NORM = 2.0  # default --adaptor-norm


def check_when_parsed(parser: ArgumentParser) -> None:
    """Let a parser check its values. parse_known_args, which parse_args calls, raises OptionError.

    Arguments that cannot be parsed give one line, not the usage of all options.
    """
    parser.error = lambda message: exit_with_argument_error(parser, sys.argv[1:], message)  # type: ignore[method-assign]
    parse = parser.parse_known_args

    def parse_and_check(*args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
        namespace, unknown = parse(*args, **kwargs)
        if not unknown:  # an unknown option may be a misspelt one of these
            check_options(namespace)
        return namespace, unknown

    parser.parse_known_args = parse_and_check  # type: ignore[method-assign]


def check_options(args: Namespace) -> None:
    """Raise OptionError for the first impossible value, or for options that exclude each other."""
    values = vars(args)
    in_parts = bool(values.get("checkpoint_suffix")) or (values.get("checkpoint_shard_count") or 1) > 1
    for name, (fits, expected) in CHECKS.items():
        value = values.get(name)
        if value is not None and not fits(value) and not (in_parts and name in FILES_OF_PARTS):
            is_folder = isinstance(value, str) and os.path.isdir(value)
            shown = _shown(value) + (", a folder" if is_folder else "")
            raise OptionError(f"--{name.replace('_', '-')}: expected {expected}, found {shown}")
    if "path" in values and values["path"] is None:
        raise OptionError(
            "--path: expected a checkpoint, found none; add one, e.g. --path checkpoints/checkpoint_best.pt"
        )
    if not values.get("sampling"):
        sizes = {name: values.get(name) for name in ("sampling_topk", "sampling_topp")}
        positive = {name: value for name, value in sizes.items() if (value or -1) > 0}
        check_unused_options(positive, "it needs --sampling; add that, or remove this option")
    if values.get("adaptor_norm") not in (None, USUAL_NORM) and not values.get("adaptor_penalty"):
        idle = {"adaptor_norm": values["adaptor_norm"]}
        check_unused_options(idle, "it needs --adaptor-penalty; add that, or remove --adaptor-norm")
    if _in_training_command():
        _check_training(values)


def _check_training(values: dict[str, Any]) -> None:
    limits = ("max_epoch", "max_update", "patience", "stop_time_hours", "stop_min_lr")
    if os.path.basename(sys.argv[0]) == "llrnn train" and not any((values.get(name) or 0) > 0 for name in limits):
        raise OptionError(
            "--max-update 0 and --max-epoch 0 mean no limit; set one of them, or --patience or --stop-time-hours, so "
            "that training ends"
        )
    if values.get("bf16") or values.get("memory_efficient_bf16"):
        raise OptionError("--bf16: fairseq needs a TPU for this option; use --bf16-products instead")
    flat = values.get("fp16") and not (values.get("memory_efficient_fp16") or values.get("fp16_no_flatten_grads"))
    if flat and (values.get("cpu") or not torch.cuda.is_available()):
        raise OptionError("--fp16 on a CPU needs --fp16-no-flatten-grads; add it")


def no_such_split(split: str, folder: str, train_subset: str) -> str:
    """Return the message for a data set that a folder lacks.

    A training is not advised to choose its checkpoint on the text that it reads, or on that of the test.
    """
    if not _in_training_command():
        return missing_split(split, folder)
    splits = splits_in(folder)
    found = f"{folder}: expected the data set {split!r}, found {', '.join(splits) or 'none'}"
    if split == train_subset:
        return f"{found}; correct --train-subset, or run fairseq-preprocess with --trainpref"
    held_out = [name for name in splits if not name.startswith((train_subset, "train", "test"))]
    make = (
        "run fairseq-preprocess with --validpref and sentences that are in neither the training nor the test text, or "
        "add --disable-validation"
    )
    return f"{found}; {did_you_mean(split, held_out, make)}"


def _in_training_command() -> bool:
    """Return whether this is a training command, and not a Python program that builds a model."""
    return os.path.basename(sys.argv[0]) in ("fairseq-train", "train.py", "llrnn train")


def other_model() -> str:
    """Return the advice for a model that does not fit its task. Only a training chooses its --arch."""
    return "use another --arch" if _in_training_command() else "is it the right checkpoint?"


def _shown(value: object) -> str:
    item = value[0] if isinstance(value, list) and len(value) == 1 else value
    return repr(item) if isinstance(value, str) else str(item)
