"""What plugs in, found by name and imported when it is named: systems in systems/, and other people's packages.

    group      what a name stands for                                      in systems/SYSTEM/
    commands   the sub-command `llrnn NAME`: a module as in cli/           commands/NAME.py (`_` for `-`), ONE/TWO.py
    parts      parts of priors and the backgrounds that make them:         part.py
               a module that registers them (prior/part.py)
    plugins    fairseq tasks, models, criteria: a module that registers    plugin.py, or a folder plugin/
    readers    lexicons, `llrnn prior --lexicon NAME:FILE`: a function
               of a path and keywords that returns a Lexicon

Another package needs no file of ours: it announces each name as an entry point, and is found once it is installed.

    [project.entry-points."fairseq_llrnn.parts"]
    dates = "their_package.dates"
"""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import OptionError

SYSTEMS = Path(__file__).parent / "systems"
GROUPS = ("commands", "parts", "plugins", "readers")


def names(group: str, folder: Path = SYSTEMS) -> dict[str, str]:
    """Every name of a group, and where it is: `package.module`, or `package.module:object`. None is imported."""
    return _in_systems(group, folder) | {
        point.name: point.value for point in entry_points(group=f"fairseq_llrnn.{group}")
    }


def _in_systems(group: str, folder: Path) -> dict[str, str]:
    found = {}
    for pattern in {
        "commands": ("*/commands/*.py", "*/commands/*/*.py"),
        "parts": ("*/part.py",),
        "plugins": ("*/plugin.py", "*/plugin/__init__.py"),
    }.get(group, ()):
        for file in sorted(folder.glob(pattern)):
            system, *rest = file.relative_to(folder).with_suffix("").parts
            if group == "commands" and rest[-1] != "__init__":
                found[" ".join(rest[1:]).replace("_", "-")] = ".".join(("fairseq_llrnn.systems", system, *rest))
            elif group != "commands":
                found[system] = f"fairseq_llrnn.systems.{system}.{rest[0]}"
    return found


def load(place: str) -> Any:
    """What a place of `names` has. Raises OptionError, with the package's own words, where it cannot be imported."""
    module, _, name = place.partition(":")
    try:
        found = importlib.import_module(module)
        return getattr(found, name) if name else found
    except (ImportError, AttributeError) as error:
        raise OptionError(
            f"{place}: expected what its package announces as an entry point, found that it cannot be imported: "
            f"{error}; install the package again, or remove it"
        ) from error


def load_all(group: str) -> None:
    """Import everything of a group, so that it registers itself."""
    for place in names(group).values():
        load(place)
