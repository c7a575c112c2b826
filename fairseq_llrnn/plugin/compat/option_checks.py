"""Values of fairseq's own options that it only finds out about in a trace, or in a loop without end: one table.

A task of ours gets the parser of the command line that names it. What was parsed is checked here before fairseq looks
at it. What needs data or a model is checked where they are (tasks/task.py). fairseq reports all other values itself.
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
from fairseq_llrnn.errors import OptionError, check_unused_options
from fairseq_llrnn.files.numbers import SCORE_TEMPERATURES
from fairseq_llrnn.plugin.compat.checkpoint_errors import LAST

Check = tuple[Callable[[Any], bool], str]  # whether a value will do, and what to expect


def _at_least(least: int) -> Check:
    return lambda value: _whole(value) >= least, f"a number of at least {least}"


def _between(least: float, most: float) -> Check:
    return lambda value: least <= value <= most, f"a number from {least:g} to {most:g}"


def _whole(value: float | str) -> float:
    """The number, also where fairseq's parser leaves it as text, as of --max-tokens-valid; nan where it is none."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() else math.nan
    return value


def _each(check: Check) -> Check:
    return lambda values: all(map(check[0], values if isinstance(values, list) else [values])), check[1]


def _is_file(path: str) -> bool:
    return os.path.isfile(path) or "://" in path


def _are_files(paths: str) -> bool:
    """Several, as fairseq parts them; of those on other machines, it says itself what is wrong."""
    return "://" in paths or all(map(_is_file, paths.split(os.pathsep)))


def _is_dictionary(text: object) -> bool:
    try:
        return isinstance(ast.literal_eval(text) if isinstance(text, str) else text, dict)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False


def _has_folder(path: str) -> bool:
    """Whether a file or folder of that name can be made, or is there."""
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    return os.path.isdir(above)


POSITIVE, NOT_NEGATIVE = _at_least(1), _at_least(0)
NOT_BELOW_ZERO: Check = (lambda value: math.isfinite(value) and value >= 0, "a finite number of at least 0")
FILE: Check = (_is_file, "a file that is there")

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
    "path": (
        _are_files,
        f"checkpoints (files, not folders) that are there, several with {os.pathsep} between them",
    ),
    "lm_path": FILE,
    "input": (
        lambda path: path == "-" or os.path.exists(path) and not os.path.isdir(path),
        "a file that is there, or - for what is typed",
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
    "lr": _each(NOT_BELOW_ZERO),  # with 0, a model stays what it is
    "update_freq": _each(POSITIVE),
    "clip_norm": NOT_BELOW_ZERO,
    "save_dir": (_has_folder, "a folder, or a name for a new one in a folder"),
    # without these files, fairseq would begin anew without a word
    "finetune_from_model": FILE,
    "continue_once": FILE,
    "restore_file": (lambda path: path == LAST or _is_file(path), "a checkpoint that is there"),
}


FILES_OF_PARTS = ("path", "restore_file")  # with a suffix, fairseq opens model-s.pt for model.pt
USUAL_NORM = 2.0  # of an --adaptor-penalty, where none is named


def check_when_parsed(parser: ArgumentParser) -> None:
    """Let a parser check what it parses. Its parse_known_args, which parse_args calls, raises OptionError.

    What it cannot parse is one line, not a page of all options.
    """
    parser.error = lambda message: exit_with_argument_error(parser, sys.argv[1:], message)  # type: ignore[method-assign]
    parse = parser.parse_known_args

    def parse_and_check(*args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
        namespace, rest = parse(*args, **kwargs)
        if not rest:  # what it does not know may be one of these, misspelt
            check_options(namespace)
        return namespace, rest

    parser.parse_known_args = parse_and_check  # type: ignore[method-assign]


def check_options(args: Namespace) -> None:
    """Raise OptionError for the first value that cannot be meant, or for options that do not go together."""
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
            "--path: expected a checkpoint, found none; say which, e.g. --path checkpoints/checkpoint_best.pt"
        )
    if not values.get("sampling"):
        sizes = {name: values.get(name) for name in ("sampling_topk", "sampling_topp")}
        positive = {name: value for name, value in sizes.items() if (value or -1) > 0}
        check_unused_options(positive, "expected --sampling beside it; add that, or leave both out")
    if values.get("adaptor_norm") not in (None, USUAL_NORM) and not values.get("adaptor_penalty"):
        idle = {"adaptor_norm": values["adaptor_norm"]}
        check_unused_options(
            idle, "expected --adaptor-penalty beside it, which takes it, found none; add that, or leave it out"
        )
    if _in_training_command():
        _check_training(values)


def _check_training(values: dict[str, Any]) -> None:
    limits = ("max_epoch", "max_update", "patience", "stop_time_hours", "stop_min_lr")
    if os.path.basename(sys.argv[0]) == "llrnn train" and not any((values.get(name) or 0) > 0 for name in limits):
        raise OptionError(
            "--max-update: expected a limit, found that 0 is none, as for --max-epoch; give one of them, --patience or "
            "--stop-time-hours"
        )
    if values.get("bf16") or values.get("memory_efficient_bf16"):
        raise OptionError("--bf16: fairseq looks for a TPU with it, on every machine; use --bf16-products in its place")
    flat = values.get("fp16") and not (values.get("memory_efficient_fp16") or values.get("fp16_no_flatten_grads"))
    if flat and (values.get("cpu") or not torch.cuda.is_available()):
        raise OptionError("--fp16 on a CPU needs --fp16-no-flatten-grads; add it")


def no_such_split(split: str, folder: str) -> str:
    """What to say of a data set that a folder lacks."""
    there = sorted({name.split(".")[0] for name in os.listdir(folder) if name.endswith(".idx")})
    return (
        f"{folder}: expected the data set {split!r} (--train-subset, --valid-subset or --gen-subset), found "
        f"{', '.join(there) or 'none'}; choose one of them, or preprocess it"
    )


def _in_training_command() -> bool:
    """Whether this is a command that trains, and not a program that builds a model in Python."""
    return os.path.basename(sys.argv[0]) in ("fairseq-train", "train.py", "llrnn train")


def other_model() -> str:
    """What to advise where a model is none of its task: only a training chooses its --arch."""
    return "use another --arch" if _in_training_command() else "is it the right checkpoint?"


def _shown(value: object) -> str:
    one = value[0] if isinstance(value, list) and len(value) == 1 else value
    return repr(one) if isinstance(value, str) else str(one)
