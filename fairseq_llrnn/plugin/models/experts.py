"""--expert: experts opened with fairseq's dictionaries."""

from __future__ import annotations

from collections.abc import Callable

from fairseq.data import Dictionary

from fairseq_llrnn.experts.loading import load_experts
from fairseq_llrnn.experts.panel import Panel
from fairseq_llrnn.plugin.compat.open_dictionary import OpenDictionary
from fairseq_llrnn.prior.parts import EvidencePart, OpenVocabularyPart
from fairseq_llrnn.prior.prior import Prior


def open_panel(names: str | None, prior: Prior, target: Dictionary, source: Dictionary | None = None) -> Panel | None:
    """The experts of --expert, opened. None where there are none.

    Raises:
        OptionError: no such file or class. DataError: one cannot be opened.
    """
    if not names:
        return None
    known: Callable[[str], int | None] = target.indices.get

    def token_of(word: str) -> int | None:
        if word == target.unk_word and prior.find(OpenVocabularyPart) is not None:
            return None  # it stands for many words
        offers = prior.find(EvidencePart) is not None and isinstance(target, OpenDictionary)
        return target.index(word) if offers else known(word)

    return Panel(
        load_experts(names),
        prior,
        target.__getitem__,
        token_of,
        None if source is None else source.__getitem__,
        eos=target.eos(),
        pad=target.pad(),
        ignored=frozenset() if source is None else frozenset((source.bos(), source.pad(), source.eos())),
    )
