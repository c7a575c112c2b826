"""The parts of priors that come with the package, one file each; importing this registers them (prior/part.py)."""

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
