"""Read checkpoints, which are untrusted input, and evaluate their options without running any code.

fairseq calls `eval` on some options of its models and criterions, such as `[(512, 3)] * 4`. They also come from
checkpoints, which must not run code. `plain_options` replaces `eval` while our tasks build a checkpoint's model.

`safe_loading` is active while a checkpoint is read. torch reads with `weights_only=True` and rejects unknown classes.
fairseq's checkpoints hold argparse.Namespace, which has only plain values, and numpy's arrays of numbers
(plain_arrays.py). Both are allowed. Code in options is rejected. A rejected or damaged file gives one clear message.
The changes last as long as the `with` block. task_checkpoints.py chooses the calls of fairseq that run in such a block.
"""

from __future__ import annotations

import argparse
import ast
import functools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from omegaconf import OmegaConf

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.compat.checkpoint_errors import explain_load_errors
from fairseq_llrnn.plugin.compat.plain_arrays import NUMBERS
from fairseq_llrnn.plugin.names import name_of
from fairseq_llrnn.registry import load_all, lost

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
LARGEST_REPEAT = 10_000


def evaluate(text: str) -> Any:
    """Evaluate numbers, strings, tuples, lists, sets and dicts of them, and + - * / between them.

    Raises:
        DataError: any other Python. TypeError: not a string, as for `eval`.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected a string, found {type(text).__name__}")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        raise DataError(
            f"option value {text!r}: expected numbers, strings, tuples or lists, joined by + - * /, found other "
            "Python, which is not run; correct the option, or use another checkpoint"
        ) from None


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(map(_value, node.elts))
    if isinstance(node, ast.List):
        return list(map(_value, node.elts))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left, right = _value(node.left), _value(node.right)
        for items, times in ((left, right), (right, left)):
            if isinstance(items, str | list | tuple) and isinstance(times, int) and len(items) * times > LARGEST_REPEAT:
                raise ValueError("`[0] * 10**9` would fill the memory")
        return OPERATORS[type(node.op)](left, right)
    return ast.literal_eval(node)


@contextmanager
def plain_options() -> Iterator[None]:
    """Replace `eval` by `evaluate` in all of fairseq's modules inside the block. May be nested."""
    fairseq_modules = (sys.modules[name] for name in list(sys.modules) if name.startswith("fairseq."))
    modules = [vars(module) for module in fairseq_modules if module]
    before = [(names, names.get("eval", eval)) for names in modules]
    for names in modules:
        names["eval"] = evaluate
    try:
        yield
    finally:
        for names, value in before:
            if value is eval:
                names.pop("eval", None)
            else:
                names["eval"] = value


ALLOWED: tuple[Any, ...] = (argparse.Namespace, distributed_utils._TensorPlaceholder, *NUMBERS)


@contextmanager
def safe_loading() -> Iterator[None]:
    """Let fairseq read checkpoints as data inside the block, with clear errors. May be nested.

    Raises, from fairseq's functions inside it:
        DataError: a checkpoint that would run code, or is damaged.
    """
    with (
        _allowed(),
        # an explicit argument overrides TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD
        replaced(torch, "load", lambda load: functools.partial(load, weights_only=True)),
        replaced(checkpoint_utils, "load_checkpoint_to_cpu", read_as_data),
        replaced(distributed_utils, "broadcast_object", with_plain_options),
        plain_options(),
    ):
        yield


def read_as_data(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's load_checkpoint_to_cpu so that it reads a checkpoint safely."""

    @functools.wraps(load)
    def checked(path: str, arg_overrides: dict[str, Any] | None = None, **passed_on: Any) -> Any:
        state = load(path, arg_overrides, **passed_on)
        forget_user_code(state, arg_overrides or {})
        check_systems_present(path, state.get("cfg"))
        return state

    return explain_load_errors(checked)


def in_safe_loading() -> bool:
    """Return whether a `safe_loading` block is active."""
    return hasattr(checkpoint_utils.load_checkpoint_to_cpu, "__wrapped__")


@contextmanager
def _allowed() -> Iterator[None]:
    """Let torch read ALLOWED. torch's own safe_globals would reset the classes of an outer block, or of the user."""
    before = torch.serialization.get_safe_globals()
    torch.serialization.add_safe_globals(list(ALLOWED))
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


@contextmanager
def replaced(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Set `owner.name` to `wrap(owner.name)` inside the block."""
    before = getattr(owner, name)
    setattr(owner, name, wrap(before))
    try:
        yield
    finally:
        setattr(owner, name, before)


def forget_user_code(state: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Remove the user's code from the options of a checkpoint. A command runs only code that its own user names.

    Args:
        overrides: options of this user (loading.py lists the options that name code).
    """
    cfg = state.get("cfg")
    for name in (code.OPTION for code in load_all("user_code")):
        for options in (state.get("args"), None if cfg is None else cfg.get("task")):
            if not overrides.get(name) and getattr(options, name, None) is not None:
                setattr(options, name, None)


def named_code(cfg: Any, option: str, from_checkpoint: bool) -> str | None:
    """Return the user's code that an option of a task names.

    A checkpoint's options name none: after safe_loading, the user's option remains.
    """
    return getattr(cfg, option, None) if in_safe_loading() or not from_checkpoint else None


def check_systems_present(path: str, cfg: Any) -> None:
    """Raise DataError, with the system's name, if the options of a checkpoint need a deleted system."""
    for part in ("task", "model"):
        if reason := lost(name := name_of(cfg, part)):
            raise DataError(f"{path}: expected a model that can be built, found the {part} {name}; {reason}")
    model: Any = cfg.get("model") if hasattr(cfg, "get") else None
    if OmegaConf.is_dict(model):
        model = OmegaConf.to_container(model, resolve=False, enum_to_str=True)
    named = vars(model) if isinstance(model, argparse.Namespace) else model if isinstance(model, dict) else {}
    for option, value in named.items():
        if reason := lost(str(value)):
            shown = f"--{str(option).replace('_', '-')} {value}"
            raise DataError(f"{path}: expected a model that can be built, found {shown}; {reason}")


def with_plain_options(broadcast: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's broadcast_object, with which the first of several processes sends a checkpoint to the others.

    The receivers read it as safely as a file. Reading would reject the options, an omegaconf object that no receiver
    uses, so that they are sent as plain values.
    """

    @functools.wraps(broadcast)
    def wrapper(obj: Any, *args: Any, **passed_on: Any) -> Any:  # the signature belongs to fairseq
        if isinstance(obj, dict) and OmegaConf.is_config(obj.get("cfg")):
            obj = {**obj, "cfg": OmegaConf.to_container(obj["cfg"], enum_to_str=True)}
        return broadcast(obj, *args, **passed_on)

    return wrapper
