"""The public entry point: log-linear output layers in plain torch (docs/guides/python.md).

head.py            LogLinearHead: loss and log-probabilities of batches, explanations
search.py          … in a search: states of hypotheses, and the next tokens
layers.py          … what it is made of, and the check of weights that are loaded
input.py           … text as tokens, and what a network reads of them
records.py         what travels between network, head, criterion and search: Condition, Rows, Batch, State, Step
split.py           batches that are too large to be looked at as a whole
class_rows.py      rows and scores of all classes
target_terms.py    what a training criterion asks: log p of targets, label smoothing, norm of the adaptor
tree.py            which tree a head takes, and what an explanation says of it
expert_terms.py    what experts add to hidden states and rows
text.py            text as numbers, and back
fingerprint.py     which prior weights were trained beside
neighbours.py      words whose vectors are near
source_embedding.py   what an encoder reads of a source by its words' features
zero_mass.py       targets that the background forbids
"""

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.records import Batch, Condition, State, Step
from fairseq_llrnn.head.source_embedding import SourceEmbedding

__all__ = ["Batch", "Condition", "LogLinearHead", "SourceEmbedding", "State", "Step"]
