"""The integration layer: the only place that imports fairseq. Importing it registers tasks, models and the criterion.

    compat/    fairseq made safe and suitable: checkpoints, expressions, dictionaries, loading
    data/      data sets that the tasks give to training
    models/    llrnn_lm, llrnn_lstm, llrnn_transformer, and the decoder that they share
    search/    searches over candidates and slots, within a limit of length
    tasks/     llrnn_language_modeling and llrnn_translation, and the criterion log_linear
    scoring/   log-probabilities of sentences and texts, and why each word has its own
"""

from fairseq_llrnn.plugin.compat import safe_checkpoints
from fairseq_llrnn.plugin.models import llrnn_lm, llrnn_lstm, llrnn_transformer
from fairseq_llrnn.plugin.tasks import criterion, language_modeling, translation

safe_checkpoints.install()

__all__ = [
    "criterion",
    "language_modeling",
    "llrnn_lm",
    "llrnn_lstm",
    "llrnn_transformer",
    "safe_checkpoints",
    "translation",
]
