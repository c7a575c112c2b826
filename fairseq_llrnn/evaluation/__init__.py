"""How good are translations? Several systems on one test, measured beside each other (`llrnn report`).

    texts.py         source, reference and outputs; the words of a line; bits per word and character
    metrics.py       BLEU and chrF with paired bootstrap, also for tuning; sentences in which systems differ most
    tallies.py       words found: by frequency in training, by a rule (numbers, names), by gold facts
    agreement.py     errors of gender and number, counted with a lexicon
    training_words.py  the words of a training text: seen and unseen words
    evaluation.py    all of these
"""

from fairseq_llrnn.evaluation.evaluation import Evaluation, Example, evaluate

__all__ = ["Evaluation", "Example", "evaluate"]
