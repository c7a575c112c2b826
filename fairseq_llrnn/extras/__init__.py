"""Whole further systems, one folder each. Deleting a folder takes the system away and breaks nothing else.

No other package names an extra. What an extra offers is found by the names of its files:

    NAME/commands/SUB.py    the sub-command `llrnn SUB` (`_` for `-`), with what every module of fairseq_llrnn/cli has
    NAME/plugin.py          fairseq tasks, models and criteria (a folder `plugin` will do), registered with ours

An extra brings README.md and options.md (scripts/list_options.py); its tests are in tests/extras/NAME.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def commands(folder: Path = FOLDER) -> dict[str, str]:
    """The sub-commands of all extras: name -> module. None of them is imported."""
    return {
        file.stem.replace("_", "-"): f"{__name__}.{file.parts[-3]}.commands.{file.stem}"
        for file in sorted(folder.glob("*/commands/*.py"))
        if file.stem != "__init__"
    }


def plugins(folder: Path = FOLDER) -> list[str]:
    """The modules of extras that register with fairseq, by name. None of them is imported."""
    files = [*folder.glob("*/plugin.py"), *folder.glob("*/plugin/__init__.py")]
    return sorted(f"{__name__}.{file.relative_to(folder).parts[0]}.plugin" for file in files)
