"""The background of a batch in which the exceptional words of every context have classes of their own."""

from __future__ import annotations

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.evidence.background import EvidenceMixture
from fairseq_llrnn.experts.contexts import Contexts
from fairseq_llrnn.output.context_classes import ContextClasses


class ExpertMixture(ContextClasses):
    """Weights b(K, x) do not change. A word or slot of evidence that is an exception leaves its class."""

    def __init__(self, base: Background, contexts: Contexts) -> None:
        super().__init__(base, contexts)
        self.contexts = contexts

    @property
    def evidence(self) -> EvidenceMixture | None:
        return self.base if isinstance(self.base, EvidenceMixture) else None


def evidence_of(background: Background) -> EvidenceMixture | None:
    """The background of sentences that offer slots, whether or not experts know of it."""
    while isinstance(background, ContextClasses) and not isinstance(background, EvidenceMixture):
        background = background.base
    return background if isinstance(background, EvidenceMixture) else None
