"""Translations of any system: rerank n-best lists (`llrnn rescore`), and compare outputs (`llrnn report`).

    nbest/           n-best lists: several hypotheses per sentence, in the formats of other systems
    rescoring.py     scoring of hypotheses by models, and ranking by a weighted sum
    tuning.py        weights tuned for BLEU or chrF on a development set, and their file
    score_cache.py   scores on disk, to resume a run
    texts.py         source, reference and outputs, and the words of a line
    metrics.py       BLEU and chrF with paired bootstrap, also for tuning, and the sentences that differ most
    tallies.py       recall of words: by training frequency, by a rule (numbers, names), by gold facts
    agreement.py     errors of gender and number agreement, counted with a lexicon
    commands/        the commands
"""
