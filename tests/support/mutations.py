"""Random damage to files: what a broken copy, a careless hand or an attacker would leave.

Every function takes a `random.Random`, so that a seed names its result.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# What readers of text trip over: numbers out of range, separators, brackets, words of the formats themselves.
TOKENS = (
    *("0", "-1", "1e30", "-1e30", "1e400", "nan", "inf", "-inf", "9" * 30, "2147483648", "-9223372036854775809"),
    *("", " ", "\t", "\n", "\r", "\r\n", "\x00", "\ufeff", "\u2028", "\x85", "\u00a0", "\U0001f600", "\u0301", "İ"),
    *("(", ")", "[", "]", "{", "}", "|", "||", "|||", "*", "+", "?", "->", ":", "=", "<", ">", "'", '"', "\\", "#"),
    *("<s>", "<pad>", "</s>", "<unk>", "<eps>", "madeupword0000", "null", "true", "\\1-grams:", "\\end\\", "POS:NOUN"),
    *("(?R)", "(a*)*b", "[[:alpha:]", "x" * 300, "(" * 50, "N0 -> N0 N0 |", "S-0", "H-0", "A:b", "TOPFORM:le"),
)
BYTES = (b"\xff", b"\xed\xa0\x80", b"\xc3", b"\x1f\x8b", b"PK\x03\x04", b"\x80\x02", b"\x00" * 9, b"\xef\xbb\xbf")


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to four kinds of damage, one after the other."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        data = rng.choice(DAMAGES)(data, rng)
    return data


def _span(size: int, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(size + 1)
    return start, min(size, start + 1 + int(rng.expovariate(0.05)))


def _cut(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(len(data), rng)
    return data[:start] + data[end:]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(len(data), rng)
    return data[:start] + data[start:end] * rng.choice((2, 3, 20)) + data[end:]


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8)) if data else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _insert_bytes(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(BYTES) + data[start:]


def _insert_token(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(TOKENS).encode() + data[start:]


def _replace_cell(data: bytes, rng: random.Random) -> bytes:
    """A whole cell between tabs or blanks becomes something else."""
    lines = data.split(b"\n")
    row = rng.randrange(len(lines))
    separator = b"\t" if b"\t" in lines[row] else b" "
    cells = lines[row].split(separator)
    cells[rng.randrange(len(cells))] = rng.choice(TOKENS).encode()
    lines[row] = separator.join(cells)
    return b"\n".join(lines)


def _swap_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def _drop_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _repeat_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    row = rng.randrange(len(lines))
    return b"\n".join([*lines[:row], *[lines[row]] * rng.choice((2, 3, 40)), *lines[row:]])


def _compress(data: bytes, rng: random.Random) -> bytes:
    """gzip, mostly whole."""
    packed = gzip.compress(data, compresslevel=1, mtime=0)
    return packed if rng.random() < 0.6 else _flip(packed, rng)


def _empty(data: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"", b"\n", b" ", b"\x00", b"{}", b"[]", b"null"))


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_cut, _truncate, _repeat, _flip, _insert_bytes, _insert_token, _insert_token, _replace_cell, _replace_cell),
    *(_replace_cell, _swap_lines, _drop_line, _repeat_line, _compress, _empty),
)


# ---- structured values ----------------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, -0.5, 1e30, 1e-30, float("nan"), float("inf"), "", "x"),
    *(10**400, -(10**400)),  # more than a float holds
    *("\ud800", "../../etc", "/", "__import__('os')", "x" * 1000, [], {}, [[]], [None], {"": None}, ["le", "le"]),
)


def mutate_json(value: Any, rng: random.Random) -> Any:
    """The same document with one place changed: another value, a missing or a repeated one."""
    copy = json.loads(json.dumps(value))
    places: list[tuple[Any, Any]] = []
    todo = [copy]
    while todo:
        node = todo.pop()
        keys: Sequence[Any] = list(node) if isinstance(node, dict) else ()
        keys = range(len(node)) if isinstance(node, list) else keys
        places += [(node, key) for key in keys]
        todo += [node[key] for key in keys]
    if not places:
        return rng.choice(VALUES)
    node, key = rng.choice(places)
    action = rng.randrange(4)
    if action == 0:
        del node[key]
    elif action == 1 and isinstance(node[key], (int, float)) and not isinstance(node[key], bool):
        node[key] = node[key] * rng.choice((-1, 2, 0, 10**6)) + rng.choice((0, 1, -1))
    elif action == 2:
        node[key] = [node[key]] if rng.random() < 0.5 else {"x": node[key]}
    else:
        node[key] = rng.choice(VALUES)
    return copy


def mutate_arrays(arrays: Mapping[str, np.ndarray], rng: random.Random) -> dict[str, np.ndarray]:
    """The same arrays with one changed: a value, its type, its shape; or one that is missing or new."""
    changed = {name: array.copy() for name, array in arrays.items()}
    if not changed:
        return {"new": np.zeros(3)}
    name = rng.choice(sorted(changed))
    array = changed[name]
    action = rng.randrange(8)
    if action == 0:
        del changed[name]
    elif action == 1:
        kinds = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]
        with np.errstate(all="ignore"):
            changed[name] = array.astype(rng.choice(kinds))
    elif action == 2:
        changed[name] = array[: rng.randrange(len(array) + 1)] if array.ndim else array
    elif action == 3:
        changed[name] = np.concatenate([array, array[-1:]]) if array.ndim else array[None]
    elif action == 4:
        changed[name] = array[None] if rng.random() < 0.5 else array.reshape(-1)[:, None]
    elif array.size:
        flat = array.reshape(-1)
        for _ in range(rng.choice((1, 1, 3))):
            with np.errstate(all="ignore"):
                flat[rng.randrange(array.size)] = _number_like(flat, rng)
    return changed


def _number_like(array: np.ndarray, rng: random.Random) -> Any:
    if array.dtype.kind == "f":
        return rng.choice([0.0, -0.0, 1.0, -1.0, 1e30, -1e30, np.nan, np.inf, -np.inf, 1e-300, 800.0, -800.0])
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        near = int(array[rng.randrange(len(array))]) + rng.choice((-1, 1))
        return rng.choice([limits.min, limits.max, 0, 1, 2**31 % limits.max, max(limits.min, min(limits.max, near))])
    return array[rng.randrange(len(array))]
