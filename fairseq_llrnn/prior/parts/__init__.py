"""The parts of priors that come with the package: one file each, with the name of the part (prior/part.py)."""

from typing import TYPE_CHECKING

from fairseq_llrnn.registry import lazily

if TYPE_CHECKING:
    from fairseq_llrnn.prior.parts.automaton import AutomatonPart as AutomatonPart
    from fairseq_llrnn.prior.parts.cache import CachePart as CachePart
    from fairseq_llrnn.prior.parts.evidence import EvidencePart as EvidencePart
    from fairseq_llrnn.prior.parts.guesses import GuessesPart as GuessesPart
    from fairseq_llrnn.prior.parts.languages import LanguagesPart as LanguagesPart
    from fairseq_llrnn.prior.parts.lexical import LexicalPart as LexicalPart
    from fairseq_llrnn.prior.parts.model import ModelPart as ModelPart
    from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart as OpenVocabularyPart
    from fairseq_llrnn.prior.parts.static import StaticPart as StaticPart

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
