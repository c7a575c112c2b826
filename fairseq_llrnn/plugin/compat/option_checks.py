"""Values of fairseq's own options that it only finds out about in a trace, or in a loop without end: one table.

A task of ours gets the parser of the command line that names it. What was parsed is checked here before fairseq looks
at it. What needs data or a model is checked where they are (tasks/task.py); what no check catches is listed in
docs/fairseq-notes.md.
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

from fairseq_llrnn.errors import DataError, OptionError, refuse_arguments, refuse_idle
from fairseq_llrnn.files.numbers import SCORE_TEMPERATURES
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.plugin.compat.bleu_options import check_bleu_options
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


def _off_or(least: float, most: float = math.inf) -> Check:
    span = f"of at least {least:g}" if most == math.inf else f"above {least:g}, up to {most:g}"
    good = (lambda x: x >= least) if most == math.inf else (lambda x: least < x <= most)
    return lambda value: value == -1 or good(value), f"-1 (off) or a number {span}"


def _each(check: Check) -> Check:
    return lambda values: all(map(check[0], values if isinstance(values, list) else [values])), check[1]


def _is_file(path: str) -> bool:
    return os.path.isfile(path) or "://" in path


def _is_alignment(path: str) -> bool:
    """A dictionary that fairseq can read, or the empty string, with which it has none."""
    if path and not os.path.isfile(path):
        return False
    try:
        return not path or all(len(line.split()) > 1 for _, line in iter_lines(path))
    except DataError:
        return False


def _are_files(paths: str) -> bool:
    """Several, as fairseq parts them; of those on other machines, it says itself what is wrong."""
    return "://" in paths or all(map(_is_file, paths.split(os.pathsep)))


def _are_betas(text: object) -> bool:
    value = _literal(str(text))
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(_is_number(x) and 0 <= x < 1 for x in value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _has_folder(path: str) -> bool:
    """Whether a file or folder of that name can be made, or is there."""
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    return os.path.isdir(above)


POSITIVE, NOT_NEGATIVE = _at_least(1), _at_least(0)
PENALTY = _between(-1e6, 1e6)  # an addend of log-probabilities
ABOVE_ZERO: Check = (lambda value: math.isfinite(value) and value > 0, "a finite number above 0")
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
    "unkpen": PENALTY,
    "temperature": _between(*SCORE_TEMPERATURES),
    "prefix_size": NOT_NEGATIVE,
    "no_repeat_ngram_size": NOT_NEGATIVE,
    "sampling_topk": _off_or(1),
    "sampling_topp": _off_or(0, 1),
    "diverse_beam_groups": _off_or(1),
    "diverse_beam_strength": PENALTY,
    "diversity_rate": (lambda value: value == -1 or 0 <= value <= 1e6, "-1 (off) or a number from 0 to 1e+06"),
    "lm_weight": PENALTY,
    "path": (
        _are_files,
        f"checkpoints (files, not folders) that are there, several with {os.pathsep} between them",
    ),
    "lm_path": FILE,
    "input": (
        lambda path: path == "-" or os.path.exists(path) and not os.path.isdir(path),
        "a file that is there, or - for what is typed",
    ),
    "replace_unk": (_is_alignment, "a file with a source word and its translation in every line, or '' to copy words"),
    "model_overrides": (
        lambda text: isinstance(_literal(text) if isinstance(text, str) else text, dict),
        "a dictionary of Python, such as \"{'data': 'folder'}\"",
    ),
    # of eval-lm; each block is padded to the window
    "context_window": _between(0, 10_000),
    "softmax_batch": NOT_NEGATIVE,
    # data
    "gen_subset": (bool, "a data set, such as test"),
    "valid_subset": (lambda names: all(names.split(",")), "data sets with commas between them, such as valid,test"),
    "train_subset": (bool, "a data set, such as train"),
    # batches
    "max_tokens": POSITIVE,
    "max_tokens_valid": POSITIVE,
    "batch_size": POSITIVE,
    "batch_size_valid": POSITIVE,
    "required_batch_size_multiple": POSITIVE,
    "tokens_per_sample": POSITIVE,
    "max_source_positions": POSITIVE,
    "max_target_positions": POSITIVE,
    "num_workers": NOT_NEGATIVE,
    "data_buffer_size": NOT_NEGATIVE,
    # training
    "seed": (lambda value: 0 <= value < 2**32, "a number from 0 to 4294967295"),
    "lr": _each(NOT_BELOW_ZERO),  # with 0, a model stays what it is
    "update_freq": _each(POSITIVE),
    "max_epoch": NOT_NEGATIVE,
    "max_update": NOT_NEGATIVE,
    "clip_norm": NOT_BELOW_ZERO,
    "weight_decay": NOT_BELOW_ZERO,
    "adam_betas": (_are_betas, "two numbers from 0 to below 1, such as '(0.9, 0.98)'"),
    "warmup_updates": NOT_NEGATIVE,
    "lr_shrink": ABOVE_ZERO,
    "patience": _off_or(1),
    "log_interval": POSITIVE,
    "validate_interval": POSITIVE,
    "validate_interval_updates": NOT_NEGATIVE,
    "save_interval": POSITIVE,
    "save_interval_updates": NOT_NEGATIVE,
    "save_dir": (_has_folder, "a folder, or a name for a new one in a folder"),
    "log_file": (lambda path: os.path.isdir(os.path.dirname(path) or "."), "a file in a folder that is there"),
    "finetune_from_model": FILE,
    "continue_once": FILE,  # fairseq would begin anew without a word
    "restore_file": (
        lambda path: path == LAST or _is_file(path),
        "a checkpoint that is there (fairseq would begin anew without a word)",
    ),
}


NO_VALUE = {"replace_unk": "@@ "}  # what fairseq says where the option stands alone
FILES_OF_PARTS = ("path", "restore_file")  # with a suffix, fairseq opens model-s.pt for model.pt
USUAL_NORM = 2.0  # of an --adaptor-penalty, where none is named


def _in_parts(values: dict[str, Any]) -> bool:
    return bool(values.get("checkpoint_suffix")) or (values.get("checkpoint_shard_count") or 1) > 1


def check_when_parsed(parser: ArgumentParser) -> None:
    """Let a parser check what it parses. Its parse_known_args, which parse_args calls, raises OptionError.

    What it cannot parse is one line, not a page of all options.
    """
    parser.error = lambda message: refuse_arguments(parser, sys.argv[1:], message)  # type: ignore[method-assign]
    parse = parser.parse_known_args

    def parse_and_check(*args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
        namespace, rest = parse(*args, **kwargs)
        if not rest:  # what it does not know may be one of these, misspelt
            check_options(namespace)
        return namespace, rest

    parser.parse_known_args = parse_and_check  # type: ignore[method-assign]


def check_options(args: Namespace) -> None:
    """Raise OptionError for the first value that cannot be meant."""
    values = vars(args)
    for name, (fits, expected) in CHECKS.items():
        value = values.get(name)
        if name in FILES_OF_PARTS and _in_parts(values):
            continue
        if value is not None and not fits(value):
            is_folder = isinstance(value, str) and os.path.isdir(value)
            shown = "nothing" if value == NO_VALUE.get(name) else _shown(value) + (", a folder" if is_folder else "")
            raise OptionError(f"--{name.replace('_', '-')}: expected {expected}, found {shown}")
    check_bleu_options(values, CHECKS)
    _check_together(values)
    _check_splits(values)


def no_such_split(split: str, folder: str) -> str:
    """What to say of a data set that a folder lacks."""
    there = sorted({name.split(".")[0] for name in os.listdir(folder) if name.endswith(".idx")})
    return (
        f"{folder}: expected the data set {split!r} (--train-subset, --valid-subset or --gen-subset), found "
        f"{', '.join(there) or 'none'}; choose one of them, or preprocess it"
    )


def _check_splits(values: dict[str, Any]) -> None:
    """Before training: fairseq speaks of another data set first, which it would ignore."""
    folder = str(values.get("data")).split(os.pathsep)[0]
    if not _in_training_command() or values.get("disable_validation") or not os.path.isdir(folder):
        return
    names = os.listdir(folder)
    for split in (values.get("valid_subset") or "").split(","):
        if split and not any(name == split or name.startswith(f"{split}.") for name in names):
            raise OptionError(no_such_split(split, folder))


def _check_together(values: dict[str, Any]) -> None:
    """Options that contradict each other, or of which one is needed."""
    beam, groups = values.get("beam"), values.get("diverse_beam_groups") or -1
    if "path" in values and values["path"] is None:
        raise OptionError(
            "--path: expected a checkpoint, found none; say which, e.g. --path checkpoints/checkpoint_best.pt"
        )
    nbest = values.get("nbest")
    if beam is not None and nbest is not None and nbest > beam:
        raise OptionError(f"--nbest {nbest}: expected at most --beam {beam}, as many as a search keeps; raise --beam")
    if values.get("sampling") and values.get("nbest") != beam:
        raise OptionError(
            f"--nbest {values.get('nbest')}: expected as many as --beam {beam} with --sampling; make them equal"
        )
    if not values.get("sampling"):
        sizes = {name: values.get(name) for name in ("sampling_topk", "sampling_topp")}
        positive = {name: value for name, value in sizes.items() if (value or -1) > 0}
        refuse_idle(positive, "expected --sampling beside it; add that, or leave both out")
    searches = {name: values.get(name) for name in ("sampling", "match_source_len", "constraints")}
    searches |= {name: max(values.get(name) or 0, 0) for name in ("diverse_beam_groups", "diversity_rate")}
    chosen = [f"--{name.replace('_', '-')}" for name, value in searches.items() if value]
    if len(chosen) > 1:
        raise OptionError(f"{' and '.join(chosen)}: expected one kind of search, found {len(chosen)}; choose one")
    for name in ("print_step", "retain_iter_history"):
        if values.get(name):
            raise OptionError(
                f"--{name.replace('_', '-')}: expected a decoder that refines its output in steps, which no model of "
                "ours does; leave it out"
            )
    if beam is not None and groups > 0 and beam % groups:
        raise OptionError(f"--diverse-beam-groups {groups}: expected a divisor of --beam {beam}; change one of them")
    if values.get("adaptor_norm") not in (None, USUAL_NORM) and not values.get("adaptor_penalty"):
        idle = {"adaptor_norm": values["adaptor_norm"]}
        refuse_idle(idle, "expected --adaptor-penalty beside it, which takes it, found none; add that, or leave it out")
    size, buffer = values.get("batch_size"), values.get("buffer_size")
    if size is not None and buffer is not None and size > max(buffer, 1):
        raise OptionError(f"--batch-size {size}: expected at most --buffer-size {buffer}; raise --buffer-size as well")
    if _in_training_command() and "max_update" in values and values.get("max_tokens") is None and size is None:
        raise OptionError("expected --max-tokens or --batch-size, found neither; say how large batches are")
    limits = ("max_epoch", "max_update", "patience", "stop_time_hours", "stop_min_lr")
    if os.path.basename(sys.argv[0]) == "llrnn train" and not any((values.get(name) or 0) > 0 for name in limits):
        raise OptionError(
            "--max-update: expected a limit, found that 0 is none, as for --max-epoch; give one of them, --patience or "
            "--stop-time-hours"
        )
    if _in_training_command() and (values.get("bf16") or values.get("memory_efficient_bf16")):
        raise OptionError("--bf16: fairseq looks for a TPU with it, on every machine; use --bf16-products in its place")
    flat = values.get("fp16") and not (values.get("memory_efficient_fp16") or values.get("fp16_no_flatten_grads"))
    if _in_training_command() and flat and (values.get("cpu") or not torch.cuda.is_available()):
        raise OptionError("--fp16: expected --fp16-no-flatten-grads beside it on a CPU, found none; add that")


def _in_training_command() -> bool:
    """Whether this is a command that trains: who builds a model in Python need not say how large batches are."""
    return os.path.basename(sys.argv[0]) in ("fairseq-train", "train.py", "llrnn train")


def other_model() -> str:
    """What to advise where a model is none of its task: only a training chooses its --arch."""
    return "use another --arch" if _in_training_command() else "is it the right checkpoint?"


def _shown(value: object) -> str:
    one = value[0] if isinstance(value, list) and len(value) == 1 else value
    return repr(one) if isinstance(value, str) else str(one)
