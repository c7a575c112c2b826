"""The kind of evidence that a prior with terms has: `llrnn prior --evidence terms`."""

from fairseq_llrnn.evidence.rules import AskedKind, register_kind

KIND, FEATURE = "terms", "Evidence:Term"
register_kind(KIND, AskedKind(FEATURE, "of a file"))
