"""The parts of priors that come with the package: one file each, with the name of the part (prior/part.py)."""

from typing import TYPE_CHECKING

from fairseq_llrnn.registry import lazily

if TYPE_CHECKING:
    from fairseq_llrnn.prior.parts.automaton import AutomatonPart
    from fairseq_llrnn.prior.parts.cache import CachePart
    from fairseq_llrnn.prior.parts.evidence import EvidencePart
    from fairseq_llrnn.prior.parts.guesses import GuessesPart
    from fairseq_llrnn.prior.parts.languages import LanguagesPart
    from fairseq_llrnn.prior.parts.lexical import LexicalPart
    from fairseq_llrnn.prior.parts.model import ModelPart
    from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart
    from fairseq_llrnn.prior.parts.static import StaticPart

__all__ = [
    "AutomatonPart",
    "CachePart",
    "EvidencePart",
    "GuessesPart",
    "LanguagesPart",
    "LexicalPart",
    "ModelPart",
    "OpenVocabularyPart",
    "StaticPart",
]

__getattr__ = lazily(
    __name__,
    {
        "prior.parts.automaton": "AutomatonPart",
        "prior.parts.cache": "CachePart",
        "prior.parts.evidence": "EvidencePart",
        "prior.parts.guesses": "GuessesPart",
        "prior.parts.languages": "LanguagesPart",
        "prior.parts.lexical": "LexicalPart",
        "prior.parts.model": "ModelPart",
        "prior.parts.open_vocabulary": "OpenVocabularyPart",
        "prior.parts.static": "StaticPart",
    },
)
