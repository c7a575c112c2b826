"""N-best lists rescored.

    rescoring.py     models score hypotheses, a weighted sum ranks them
    tuning.py        the weights, for BLEU or chrF of a development set, and their file
    phrase_table.py  phrase tables, and how well they cover a hypothesis
    score_cache.py   scores on disk, to continue a run
"""
