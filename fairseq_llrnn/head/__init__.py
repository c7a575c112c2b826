"""The public entry point: log-linear output layers in plain torch (docs/guides/python.md).

head.py            LogLinearHead: what it is made of, losses and log-probabilities of batches, explanations, checks
search.py          … in a search: states of hypotheses, and the next tokens
inputs.py          what goes in: text as numbers, and what a network reads of words
checks.py          what it refuses: weights of other priors, targets that the background forbids

What it is given, and what it answers with, is in fairseq_llrnn.output: class_source, normalisers, records.
"""

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.inputs import FeatureInput
from fairseq_llrnn.output.class_source import ClassSource
from fairseq_llrnn.output.normalisers import Exact
from fairseq_llrnn.output.records import Batch, Condition, State

__all__ = ["Batch", "ClassSource", "Condition", "Exact", "FeatureInput", "LogLinearHead", "State"]
