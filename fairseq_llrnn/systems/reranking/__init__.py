"""Translations of any system: n-best lists reranked (`llrnn rescore`), and outputs compared (`llrnn report`).

    nbest/           n-best lists: several hypotheses for each sentence, as other systems write them
    rescoring.py     models score hypotheses, a weighted sum ranks them
    tuning.py        the weights, for BLEU or chrF of a development set, and their file
    score_cache.py   scores on disk, to continue a run
    phrase_table.py  phrase tables, and how well they cover a hypothesis
    extraction.py    phrase pairs of an aligned bitext (`llrnn phrases extract`), and their scores
    texts.py         source, reference and outputs; the words of a line
    metrics.py       BLEU and chrF with paired bootstrap, also for tuning; sentences in which systems differ most
    tallies.py       words found: by frequency in training, by a rule (numbers, names), by gold facts
    agreement.py     errors of gender and number, counted with a lexicon
    evaluation.py    all of these
    commands/        the sub-commands
"""
