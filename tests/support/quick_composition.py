"""hydra's composition of fairseq's settings, remembered: it costs more than most commands of the tests do otherwise.

Of two command lines with the same task, model and criterion, and the same settings, only values differ. What hydra made
of the first is kept in a file, and hydra sets the values that differ in a copy of it, as it sets all.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import pickle
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

FOLDER = "LLRNN_TESTS_COMPOSITIONS"  # the variable that names where a run of pytest keeps them


class _Pickler(pickle.Pickler):
    """fairseq makes its classes of choices in a function, so that no module has them: they are known by their names."""

    def persistent_id(self, it: Any) -> tuple[str, ...] | None:
        return tuple(it.__members__) if isinstance(it, type) and issubclass(it, Enum) else None


class _Unpickler(pickle.Unpickler):
    known: ClassVar[dict[tuple[str, ...], type[Enum]]] = {}

    def persistent_load(self, names: tuple[str, ...]) -> type[Enum]:
        if names not in self.known:
            self.learn()
        return self.known[names]

    @classmethod
    def learn(cls) -> None:
        cls.known.update((tuple(found.__members__), found) for found in _enums(Enum))


def _enums(base: type[Enum]) -> Iterator[type[Enum]]:
    for found in base.__subclasses__():
        yield found
        yield from _enums(found)


@functools.cache
def remember_compositions() -> None:
    """From now on, let fairseq's `compose` in this process and its children keep what it makes in the folder."""
    if FOLDER not in os.environ:
        return
    from fairseq.dataclass import utils
    from hydra import initialize_config_dir
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser

    folder, compose, parser = Path(os.environ[FOLDER]), utils.compose, OverridesParser.create()
    parser.parse_overrides(["a.b=1", "a.b='c'", "a.b=0.5", "a.b=[1,2]", "a.b=null", "a.b=True", "a.b=c"])  # it learns
    _Unpickler.learn()
    settings = str(Path(utils.__file__).parents[1] / "config")

    def composed(config_name: str, overrides: Sequence[str], strict: bool) -> Any:
        # `task=…` chooses a part of the settings, `task.data=…` is a value
        kinds = "\n".join(name if "." in (name := one.partition("=")[0]) else one for one in overrides)
        kept = folder / hashlib.sha256(kinds.encode()).hexdigest()
        if not kept.exists():
            with initialize_config_dir(settings):
                made = compose(config_name, overrides=overrides, strict=strict)
            unfinished = kept.with_suffix(f".{os.getpid()}")
            with unfinished.open("wb") as file:
                _Pickler(file).dump((list(overrides), made))
            unfinished.rename(kept)
            return made
        before, made = _Unpickler(io.BytesIO(kept.read_bytes())).load()
        changed = [new for old, new in zip(before, overrides, strict=True) if old != new]
        ConfigLoaderImpl._apply_overrides_to_config(parser.parse_overrides(changed), made)
        return made

    utils.compose = composed
    utils.initialize = lambda config_path: contextlib.nullcontext()  # which looks for who calls it
