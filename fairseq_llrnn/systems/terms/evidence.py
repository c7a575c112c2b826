"""The evidence kind `terms` (`llrnn prior --evidence terms`)."""

from fairseq_llrnn.evidence.rules import StringKind, register_kind

KIND, FEATURE = "terms", "Evidence:Term"
register_kind(KIND, StringKind(FEATURE, "of a file"))
