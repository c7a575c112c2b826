"""The evidence kind `terms` (`llrnn prior --evidence terms`), and the values of `--term-strength`."""

from fairseq_llrnn.evidence.rules import StringKind, register_kind

MUST, MAY = "must", "may"  # values of --term-strength
KIND, FEATURE = "terms", "Evidence:Term"
register_kind(KIND, StringKind(FEATURE, "of a file"))
