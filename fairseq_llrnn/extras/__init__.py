"""Whole further systems, one folder each. Deleting a folder takes the system away and breaks nothing else.

No other package names an extra. What an extra offers is found by the names of its files:

    NAME/commands/SUB.py    the sub-command `llrnn SUB` (`_` for `-`), with what every module of fairseq_llrnn/cli has;
                            NAME/commands/ONE/TWO.py is `llrnn ONE TWO`
    NAME/plugin.py          fairseq tasks, models and criteria (a folder `plugin` will do), registered with ours

    NAME/part.py            parts of priors, and the backgrounds of `llrnn prior --background` that make them
                            (prior/named_backgrounds.py), registered when a prior or an expression names one

An extra brings README.md and options.md (scripts/list_options.py); its tests are in tests/extras/NAME.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def commands(folder: Path = FOLDER) -> dict[str, str]:
    """The sub-commands of all extras: name -> module. None of them is imported."""
    return {
        " ".join(parts[2:]).replace("_", "-"): ".".join((__name__, *parts))
        for file in sorted([*folder.glob("*/commands/*.py"), *folder.glob("*/commands/*/*.py")])
        if (parts := file.relative_to(folder).with_suffix("").parts)[-1] != "__init__"
    }


def plugins(folder: Path = FOLDER) -> list[str]:
    """The modules of extras that register with fairseq, by name. None of them is imported."""
    files = [*folder.glob("*/plugin.py"), *folder.glob("*/plugin/__init__.py")]
    return sorted(f"{__name__}.{file.relative_to(folder).parts[0]}.plugin" for file in files)


def parts(folder: Path = FOLDER) -> list[str]:
    """The modules of extras that register parts of priors, by name. None of them is imported."""
    return sorted(f"{__name__}.{file.parent.name}.part" for file in folder.glob("*/part.py"))
