"""N-best lists rescored.

    rescoring.py     models score hypotheses, a weighted sum ranks them
    phrases.py       … how well a phrase table covers them (phrase_table.py: such files)
    tuning.py        the weights, for BLEU or chrF of a development set, and their file
    score_cache.py   scores on disk, to continue a run
"""
