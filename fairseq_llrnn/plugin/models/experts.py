"""--expert: experts opened with fairseq's dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairseq.data import Dictionary

from fairseq_llrnn.prior.prior import Prior

if TYPE_CHECKING:
    from fairseq_llrnn.systems.experts.panel import Panel


def open_panel(names: str | None, prior: Prior, source: Dictionary | None = None) -> Panel | None:
    """The experts of --expert, opened. None where there are none.

    Raises:
        OptionError: no such file or class. DataError: one cannot be opened.
    """
    if not names:
        return None
    from fairseq_llrnn.systems.experts.loading import load_experts, open_experts

    return open_experts(load_experts(names), prior, None if source is None else source.__getitem__)
