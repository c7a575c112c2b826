"""Plug-ins, found by name and imported on demand: systems in systems/, and other packages, such as llrnn_research.

    group      meaning of a name                                           in systems/SYSTEM/
    commands   the sub-command `llrnn NAME`: a module as in cli/           commands/NAME.py (`_` for `-`), ONE/TWO.py
    parts      parts of priors and their backgrounds: a module that        part.py (ours: prior/parts/NAME.py)
               registers them (prior/part.py)
    plugins    fairseq tasks, models, criteria and options: a module       plugin.py, or a folder plugin/
               that registers them
    show       more output of `llrnn show`: a module (cli/show)            show.py
    explain    more output of `llrnn explain`: a module (cli/explain)      explain.py
    evidence   kinds of required strings of translations: a module         evidence.py
               that registers them (evidence/rules.py)
    cells      kinds of recurrent cells: a module that registers           cells.py
               them (networks/recurrent.py)
    user_code  options with names of the user's code: a module             user_code.py
               (plugin/compat/loading.py)
    readers    lexicons, `llrnn prior --lexicon NAME:FILE`: a function
               of a path, with the keywords `lowercase` (bool) and
               `language` (the setting words.lower), that returns a Lexicon

Another package declares each name as an entry point:

    [project.entry-points."fairseq_llrnn.parts"]
    dates = "their_package.dates"

A dot in the name of a command stands for a blank: `mrf.train` is `llrnn mrf train`.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import OptionError

PACKAGE = Path(__file__).parent
FILES = {  # patterns of a group in this package
    "commands": ("systems/*/commands/[a-z]*.py", "systems/*/commands/*/[a-z]*.py"),
    "parts": ("prior/parts/[a-z]*.py", "systems/*/part.py"),
    "plugins": ("systems/*/plugin.py", "systems/*/plugin/__init__.py"),
    "show": ("systems/*/show.py",),
    "evidence": ("systems/*/evidence.py",),
    "explain": ("systems/*/explain.py",),
    "cells": ("systems/*/cells.py",),
    "user_code": ("systems/*/user_code.py",),
    "readers": (),
}
# Names of each system in models, priors, commands, head modules and options, for messages if it is absent: systems of
# this package, and those of llrnn_research, the second package of the repository.
OFFERED = {
    "characters": (
        "llrnn_lm_char_small llrnn_lm_char_large cnn characters --input-characters --source-characters "
        "--character-mode --character-embed-dim --character-filters --highway-layers --neighbours"
    ),
    "classification": "llrnn_classification llrnn_bag llrnn_classifier classify",
    "experts": "experts --expert --reverse-expert --lm-expert",
    "reranking": "rescore report",
    "regularisation": "--weight-drop --activation-penalty --change-penalty",
    "terms": "terms --terms --term-strength --term-forms --source-lexicon --invented-terms",
}
RESEARCH = {
    "discourse": "discourse discourse_encoder encode",
    "dynamic_evaluation": "dynamic-evaluation",
    "markov_field": "markov_field mrf",
    "mogrifier": "mogrifier",
    "output_trees": (
        "tree llrnn_adagrad llrnn_adam --output-tree --tree-arity --tree-depth --tree-clusters --tree-rows "
        "--tree-reassign --tree-reassign-epochs --tree-sparse-gradients --tree --picture"
    ),
    "phrase_tables": "phrases",
    "rare_words": "rare-words",
    "translators": "llrnn_rctm llrnn_encoder_decoder llrnn_seq2seq llrnn_rnnsearch",
    "variable_computation": (
        "vcgru vcrnn --vc-target --vc-penalty --vc-sharpness --vc-sharpen-updates --vc-guide --computation"
    ),
}


def names(group: str, package: Path = PACKAGE) -> dict[str, str]:
    """Return every name of a group, and its place: `package.module`, or `package.module:object`. Nothing is
    imported.
    """
    places = {}
    for file in sorted(file for pattern in FILES[group] for file in package.glob(pattern)):
        place = file.relative_to(package).with_suffix("").parts
        module = ".".join((PACKAGE.name, *place)).removesuffix(".__init__")
        if group == "commands":
            places[" ".join(place[3:]).replace("_", "-")] = module
        else:
            places[place[1] if place[0] == "systems" else place[-1]] = module
    points = _announced(tuple(sys.path)).select(group=f"{PACKAGE.name}.{group}")
    blank = " " if group == "commands" else "."
    return places | {point.name.replace(".", blank): point.value for point in points}


@functools.cache  # a scan of all packages on the path takes some hundredths of a second
def _announced(path: tuple[str, ...]) -> Any:  # Python 3.12 has another type
    return entry_points()


def lost(name: str) -> str | None:
    """Return a message for a name of a system that is absent, or None for any other name."""
    system = next((system for system, offered in (OFFERED | RESEARCH).items() if name in offered.split()), None)
    if system in OFFERED and not (PACKAGE / "systems" / system).exists():
        return f"it is of the system {system}, which was deleted: put the folder {PACKAGE.name}/systems/{system} back"
    if system in RESEARCH and not any(place.startswith("llrnn_research.") for place in names("plugins").values()):
        return f"it is of the system {system}, which is not installed; in a checkout: pip install ./research"
    return None


def load(place: str) -> Any:
    """Import a place of `names`. Raises OptionError with the package's message if it cannot be imported."""
    module, _, name = place.partition(":")
    try:
        imported = importlib.import_module(module)
        return getattr(imported, name) if name else imported
    except Exception as error:  # another package may raise anything
        raise OptionError(
            f"{place}: the entry point of its package cannot be imported: "
            f"{type(error).__name__}: {error}; install the package again, or remove it"
        ) from error


def load_all(group: str) -> tuple[Any, ...]:
    """Import all modules of a group, so that they register themselves."""
    return _load_all(group, tuple(sys.path))


@functools.cache
def _load_all(group: str, path: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(load(place) for place in names(group).values())


def lazily(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are imported at their first use.

    Args:
        places: module of this package -> its names, separated by blanks.
    """
    modules = {name: module for module, names in places.items() for name in names.split()}

    def load_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(modules)}")
        value = getattr(importlib.import_module(f"fairseq_llrnn.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    vars(sys.modules[package]).setdefault("__all__", [*modules])
    return load_name
