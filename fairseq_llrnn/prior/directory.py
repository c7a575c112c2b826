"""The files of a prior's directory: written completely or not at all, and read with every hash checked.

All of it is untrusted input: every entry of prior.json is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.features.dictionary import check_order, hash_symbols
from fairseq_llrnn.files.array_file import map_file, read_arrays, write_arrays
from fairseq_llrnn.files.atomic_write import check_room, may_replace, recover, set_aside, whole_folder, writing
from fairseq_llrnn.files.reading import check_regular_file
from fairseq_llrnn.prior.part import Part

FORMAT = "fairseq_llrnn prior"
VERSION = 4
JSON_FILE = "prior.json"
REBUILD = "build it again with `llrnn prior`"
FINGERPRINT = "fingerprint"  # of the whole prior, to search for one; a loaded prior computes its own
SOURCE_HASH = "source_dictionary_sha256"  # if some part belongs to source words
LISTS = ("sources", "unsupported")  # settings that are lists
ENTRIES = ("settings", "dictionary_sha256", "arrays_sha256", "output_features", "input_features", "parts")
WORDS_FILE, ARRAYS_FILE, SOURCE_FILE = "dictionary.txt", "arrays.npz", "source.txt"
RECIPE_FILE = "recipe.toml"


@dataclass(frozen=True)
class SavedPrior:
    """The contents of a directory without the files of parts."""

    description: Mapping[str, Any]
    symbols: tuple[str, ...]
    source_symbols: tuple[str, ...]
    arrays: Mapping[str, np.ndarray]  # arrays of the part NAME are NAME/…
    recipe: str = ""  # text of recipe.toml, when the prior is written

    def arrays_of(self, part: str) -> dict[str, np.ndarray]:
        """Return the arrays of a part, by their own names."""
        start = f"{part}/"
        return {name.removeprefix(start): array for name, array in self.arrays.items() if name.startswith(start)}


# context manager of all checks and writes: turns their errors into PriorError
_place_errors = partial(writing, what="prior", advice=", or give another --out", refuse=PriorError)


def check_place(directory: Path) -> None:
    """Raise PriorError if the place exists and is no prior, or is not writable. Call it also before a prior is
    built.
    """
    directory = directory.resolve()  # `.` has no name that a rename could take
    with _place_errors(directory):
        names = _names_in(directory) if os.path.isfile(directory / JSON_FILE) else set()
        if not may_replace(directory, names.__contains__):
            raise PriorError(
                f"{directory}: expected a free name or an earlier prior, found something else there; give another --out"
            )
        check_room(directory)


def write_directory(directory: Path, prior: SavedPrior, parts: Mapping[str, Part]) -> None:
    """Write all files to a temporary folder next to `directory`, then rename the folder.

    Raises:
        PriorError: the place exists and is no prior, or cannot be written.
    """
    directory = directory.resolve()
    with _place_errors(directory):
        recover(directory)
        check_place(directory)
        directory.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(directory) as temporary:
            _write(temporary, prior)
            for name, part in parts.items():
                part.write(temporary / name)


def _write(directory: Path, prior: SavedPrior) -> None:
    arrays = directory / ARRAYS_FILE
    with arrays.open("wb") as file:
        write_arrays(file, prior.arrays)
    _write_words(directory / WORDS_FILE, prior.symbols)
    if prior.source_symbols:
        _write_words(directory / SOURCE_FILE, prior.source_symbols)
    if prior.recipe:
        (directory / RECIPE_FILE).write_text(prior.recipe, "utf-8", "surrogateescape", "\n")
    digest = hashlib.sha256(map_file(arrays)).hexdigest()
    description = {"format": FORMAT, "version": VERSION, "arrays_sha256": digest, **prior.description}
    text = json.dumps(description, ensure_ascii=False, indent=1)
    (directory / JSON_FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def read_directory(directory: Path) -> SavedPrior:
    """Read all but the files of parts, and check the hashes.

    Raises:
        PriorError: there is no prior, it has another version, or a file is truncated or changed.
    """
    description = read_description(directory)
    try:
        for name in (WORDS_FILE, SOURCE_FILE, ARRAYS_FILE):
            check_regular_file(directory / name, may_be_pipe=False)
        symbols = _read_words(directory / WORDS_FILE)
        source_symbols = _read_words(directory / SOURCE_FILE) if SOURCE_HASH in description else ()
        raw = map_file(directory / ARRAYS_FILE)
    except DataError as error:
        raise PriorError(str(error), error.path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PriorError(f"{directory}: a file of the prior cannot be read ({error}); {REBUILD}") from None
    for name, words, expected in (
        (WORDS_FILE, symbols, description["dictionary_sha256"]),
        (SOURCE_FILE, source_symbols, description.get(SOURCE_HASH)),
    ):
        if words and hash_symbols(words) != expected:
            raise PriorError(f"{directory / name}: expected the words the prior was made for, found others; {REBUILD}")
        if words:
            with unsound(directory / name):
                check_order(words)
    if hashlib.sha256(raw).hexdigest() != description["arrays_sha256"]:
        raise PriorError(
            f"{directory / ARRAYS_FILE}: expected the arrays described in {JSON_FILE}, found {len(raw)} other bytes "
            f"(truncated or changed); copy it again or {REBUILD}"
        )
    with unsound(directory):
        return SavedPrior(description, symbols, source_symbols, read_arrays(directory / ARRAYS_FILE, raw))


def saved_fingerprint(directory: Path) -> str | None:
    """Return the stored fingerprint of the prior in a folder, or None if there is no sound prior."""
    with suppress(PriorError):
        return str(read_description(directory).get(FINGERPRINT))
    return None


def read_description(directory: Path) -> dict[str, Any]:
    """Return the contents of prior.json.

    Raises:
        PriorError: there is no prior, it has another version, or entries are missing or of the wrong type.
    """
    path = directory / JSON_FILE
    try:
        check_regular_file(path, may_be_pipe=False)
        description = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(description, ensure_ascii=False).encode()  # raises ValueError for lone surrogates
    except DataError as error:
        raise PriorError(str(error), error.path) from None
    except OSError:
        aside = set_aside(directory.absolute())
        absence = "none; make one with `llrnn prior`"
        if aside is not None:
            absence = f"none: a process that replaced it was killed; it is now in {aside}: move it back"
        elif inside := {path.parent.name: path.parent for path in sorted(directory.glob(f"*/{JSON_FILE}"))}:
            absence = f"none; did you mean {inside.get('prior') or min(inside.values())}?"
        expected = f"expected a prior (a directory with {JSON_FILE}), found {absence}"
        raise PriorError(f"{directory}: {expected}", directory) from None
    except (ValueError, RecursionError) as error:
        raise PriorError(f"{path}: expected JSON, found damage ({error}); {REBUILD}") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise PriorError(f"{path}: expected the description of a {FORMAT}, found something else; {REBUILD}")
    version = description.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        fix = "it comes from a newer fairseq_llrnn: use that one" if newer else f"{REBUILD} of this version"
        raise PriorError(f"{path}: expected version {VERSION}, found {version}; {fix}")
    missing = set(ENTRIES) - set(description)
    if missing:
        raise PriorError(f"{path}: expected the entries {', '.join(sorted(missing))}, which are missing; {REBUILD}")
    settings, names = description["settings"], (description["output_features"], description["input_features"] or [])
    if not isinstance(settings, dict) or not all(map(_is_list_of_texts, names)):
        raise PriorError(f"{path}: expected settings and lists of feature names, found something else; {REBUILD}")
    for name, value in settings.items():
        if not (_is_list_of_texts(value) if name in LISTS else _is_setting(value)):
            expected = "a list of texts" if name in LISTS else "a text, a number, a list of texts, true, false or null"
            raise PriorError(f"{path}: settings: {name}: expected {expected}, found something else; {REBUILD}")
    parts = description["parts"]
    if not isinstance(parts, list) or not all(isinstance(p, dict) and isinstance(p.get("part"), str) for p in parts):
        raise PriorError(f"{path}: expected a list of parts with their names, found something else; {REBUILD}")
    return description


def _is_setting(value: object) -> bool:
    return isinstance(value, (str, int, float, NoneType)) or _is_list_of_texts(value)


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


# OverflowError: JSON allows integers that no float can represent
_UNSOUND = (ValueError, TypeError, AttributeError, OverflowError)


@contextmanager
def unsound(directory: Path) -> Iterator[None]:
    """Turn any error from unsound contents of a prior into one PriorError."""
    try:
        yield
    except KeyError as error:
        raise PriorError(f"{directory}: expected {error} in the prior, found none; {REBUILD}") from None
    except RecursionError:
        raise PriorError(f"{directory}: entries of {JSON_FILE} are nested too deeply; {REBUILD}") from None
    except (*_UNSOUND, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise PriorError(f"{directory}: {error}; {REBUILD}") from None


def check_symbols(symbols: Sequence[str], own_symbols: Sequence[str], problem: str, advice: str) -> None:
    """Raise PriorError with the first difference unless the symbols of a dictionary are the prior's, `own_symbols`."""
    if tuple(symbols) == tuple(own_symbols):
        return
    difference = next(
        (i for i, (a, b) in enumerate(zip(symbols, own_symbols, strict=False)) if a != b),
        min(len(symbols), len(own_symbols)),
    )
    symbol = symbols[difference] if difference < len(symbols) else "nothing"
    expected = own_symbols[difference] if difference < len(own_symbols) else "nothing"
    raise PriorError(
        f"{problem}: sizes {len(own_symbols)} and {len(symbols)}, first difference at index {difference} "
        f"({expected!r} in the prior, {symbol!r} in the dictionary); {advice}"
    )


def _write_words(path: Path, symbols: Sequence[str]) -> None:
    """Write one word per line."""
    path.write_text("\n".join(symbols) + "\n", encoding="utf-8", newline="\n")


def _names_in(path: Path) -> set[str]:
    """Return the names of files and folders that a prior in `path` has or could have."""
    names = {JSON_FILE, WORDS_FILE, ARRAYS_FILE, SOURCE_FILE, RECIPE_FILE}
    with suppress(PriorError):  # an old or damaged prior may be replaced if it has no folders
        names |= {part["part"] for part in read_description(path)["parts"]}
    return names


def _read_words(path: Path) -> tuple[str, ...]:
    """Read the file of `_write_words`."""
    text = path.read_bytes().decode("utf-8")  # read_text would treat \r as the end of a line
    return tuple(text.removesuffix("\n").split("\n"))
