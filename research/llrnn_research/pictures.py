"""Pictures as PNG files. They need matplotlib, the extra `plots`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_llrnn.errors import need_library
from fairseq_llrnn.files.atomic_write import whole_binary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def need_matplotlib(option: str) -> None:
    """Raise OptionError with the option's name if matplotlib is not installed."""
    need_library(option, "matplotlib", "plots")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of these sizes in inches, without a window."""
    # fairseq lowers the root logger's level, and matplotlib logs much about fonts
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def plain(text: str) -> str:
    """Escape a text for matplotlib: a $ would begin a formula."""
    return text.replace("$", r"\$")


def save(figure: Figure, path: Path, dpi: int) -> None:
    """Write a PNG atomically. Raises OSError."""
    with whole_binary(path) as file:
        figure.savefig(file, format="png", dpi=dpi)
