"""The public entry point: log-linear output layers in plain torch (docs/guides/python.md).

head.py            LogLinearHead: loss, log-probabilities, decoding, embedding
records.py         what travels between network, head, criterion and search: Condition, Rows, Batch, State, Step
split.py           batches that are too large to be looked at as a whole
class_rows.py      rows and scores of all classes
target_terms.py    what a training criterion asks: log p of targets, label smoothing, norm of the adaptor
expert_terms.py    what experts add to hidden states and rows
text.py            text as numbers, and back
source_embedding.py   what an encoder reads of a source by its words' features
zero_mass.py       targets that the background forbids
"""

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.records import Batch, Condition, State, Step
from fairseq_llrnn.head.source_embedding import SourceEmbedding

__all__ = ["Batch", "Condition", "LogLinearHead", "SourceEmbedding", "State", "Step"]
