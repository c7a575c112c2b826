"""The prior: its parts, its directory on disk, and how it is built."""

from fairseq_llrnn.prior import parts as parts  # which registers them
from fairseq_llrnn.prior.options import (
    BackgroundOptions,
    EvidenceOptions,
    OpenOptions,
    PriorOptions,
    TranslationOptions,
)
from fairseq_llrnn.prior.part import BuildContext, Part, SavedPart, register_part
from fairseq_llrnn.prior.prior import Prior, load_prior

__all__ = [
    "BackgroundOptions",
    "BuildContext",
    "EvidenceOptions",
    "OpenOptions",
    "Part",
    "Prior",
    "PriorOptions",
    "SavedPart",
    "TranslationOptions",
    "load_prior",
    "register_part",
]
