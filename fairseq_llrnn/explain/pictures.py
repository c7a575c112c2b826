"""Pictures as PNG files. Matplotlib is asked for here alone: extra `plots`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_llrnn.errors import need_library
from fairseq_llrnn.files.atomic_write import whole_binary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def need_matplotlib(option: str) -> None:
    """Raises OptionError, which names the option, where it is not installed."""
    need_library(option, "matplotlib", "plots")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, of no window."""
    # fairseq turns the root logger up, and matplotlib has much to say about fonts
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def plain(text: str) -> str:
    """The text as matplotlib shall show it: a $ would begin a formula."""
    return text.replace("$", r"\$")


def save(figure: Figure, path: Path, dpi: int) -> None:
    """Write a PNG, whole or not at all. Raises OSError."""
    with whole_binary(path) as file:
        figure.savefig(file, format="png", dpi=dpi)
