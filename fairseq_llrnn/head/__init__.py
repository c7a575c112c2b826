"""Log-linear output layers in plain torch: the public entry point (docs/guides/python.md).

head.py            LogLinearHead: construction, batches, one call a batch, explanations
losses.py          its methods for batches: log-probabilities, losses, label smoothing
stored_head.py     its weights: drawn, moved, loaded
search.py          its methods for searches: states of hypotheses, distributions of the next token
inputs.py          its inputs: text as token ids, and embeddings of words by features
checks.py          errors: weights trained with another prior or with other modules, forbidden targets, invalid ids

The records that these functions take and return are in fairseq_llrnn.output: class_source, normalisers, records.
"""

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.inputs import FeatureInput
from fairseq_llrnn.output.class_source import ClassSource
from fairseq_llrnn.output.normalisers import Exact
from fairseq_llrnn.output.records import Batch, Condition, State

__all__ = ["Batch", "ClassSource", "Condition", "Exact", "FeatureInput", "LogLinearHead", "State"]
