"""Sentence encoders that learn from the order of sentences: ORDER, NEXT, CONJUNCTION (Jernite 2018, chapter 5).

data.py           examples from paragraphs, and the data folder: sentences as ids, examples as sentence numbers
preparing.py      texts -> data folder
encoders.py       words -> sentence vector, and classifiers over such vectors
plugin/           the task, the model and the criterion for fairseq, and vectors from a checkpoint
commands/         `llrnn discourse`, `llrnn encode`
"""

OBJECTIVES = ("order", "next", "conjunction")
