"""How good are translations? Several systems on one test, measured beside each other (`llrnn report`).

    texts.py         source, reference and outputs, read and checked
    words.py         the words of a line, tokenised or not
    scores.py        BLEU and chrF with paired bootstrap (corpus_metrics.py: also for tuning)
    tallies.py       words found: by frequency in training, by a rule (numbers, names), by gold facts
    facts.py         the gold facts' file
    agreement.py     errors of gender and number, counted with a lexicon
    differences.py   sentences in which systems differ most
    evaluation.py    all of these
    text_bits.py     bits of a text under a language model (`llrnn score`)
    text_case.py     … and its capitals, where a model knows none
    line_batches.py  … and its lines in batches
    label_hits.py    how many labels a classifier names right (`llrnn classify`)
"""

from fairseq_llrnn.evaluation.evaluation import Evaluation, Example, evaluate

__all__ = ["Evaluation", "Example", "evaluate"]
