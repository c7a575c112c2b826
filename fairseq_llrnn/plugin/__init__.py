"""The rim: the only place that imports fairseq. Importing it registers tasks, models and the criterion.

    checkpoints.py            safe loading of checkpoints
    other_dictionaries.py     a checkpoint that was trained over other words is refused
    expressions.py            options that are Python expressions, evaluated without running code
    task.py                   what every task of ours does: a prior, exact resuming, search over candidates
    language_modeling_task.py, translation_task.py
    generation.py             that search, as the host's generator
    decoder.py                what every decoder of ours ends in: the log-linear output layer and a background
    decoder_options.py        options of recurrent decoders, and the parts built from them
    recurrent_decoder.py, language_model.py        llrnn_lm
    attention_decoder.py, lstm_translation.py      llrnn_lstm
    transformer_translation.py                     llrnn_transformer
    load.py                   reads a checkpoint and builds its model
    general_model.py          a trained language model as the background of another
    explaining.py             one of our models, and why it gave each word its probability
    scoring.py                log-probabilities of whole sentences under any language or translation model
    criterions.py             log_linear
    bitext.py                 a binarised bitext, for `llrnn prior`; not imported here
"""

from fairseq_llrnn.plugin import (
    checkpoints,
    criterions,
    language_model,
    language_modeling_task,
    lstm_translation,
    transformer_translation,
    translation_task,
)

checkpoints.install()

__all__ = [
    "checkpoints",
    "criterions",
    "language_model",
    "language_modeling_task",
    "lstm_translation",
    "transformer_translation",
    "translation_task",
]
