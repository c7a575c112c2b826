"""The integration layer: the only place that imports fairseq. `register` lets fairseq know the names of its options.

    compat/    fairseq made safe and suitable: checkpoints, options, dictionaries, loading
    data/      data sets that the tasks give to training
    models/    llrnn_lm, llrnn_lbl, llrnn_transformer_lm, llrnn_lstm, llrnn_transformer; decoders that they share
    search/    searches over candidates and slots, within a limit of length
    tasks/     llrnn_language_modeling, llrnn_translation
    criterion.py  log_linear: −log p(target | K)
    scoring/   log-probabilities of sentences and texts, why each word has its own
    commands.py  fairseq's commands as `llrnn train` and its sisters run them (command_lines.py: what they print)
    kinds.py      what they do for each task
    names.py      names of tasks and models, in fairseq's registries and in checkpoints

It changes nothing for other tasks but where the norm of gradients is computed (compat/counted_gpus.py): compat/ says
what is done for ours alone. Users call `fairseq_llrnn.register()`; the package does so itself where fairseq
imports it as its --user-dir. What systems and other packages bring for fairseq is found by `fairseq_llrnn.registry`.
"""

import importlib

from fairseq import utils

from fairseq_llrnn import registry
from fairseq_llrnn.plugin.compat.counted_gpus import clip_where_gradients_are
from fairseq_llrnn.plugin.compat.task_checkpoints import load_safely
from fairseq_llrnn.plugin.compat.user_errors import runs_fairseq, say_errors_plainly
from fairseq_llrnn.plugin.names import MODULES

OURS = (
    "tasks.language_modeling", "tasks.translation", "criterion", "models.llrnn_lm", "models.llrnn_transformer_lm",
    "models.llrnn_lstm", "models.llrnn_transformer",
)  # fmt: skip
registry.load_all("plugins")
load_safely()
utils.clip_grad_norm_ = clip_where_gradients_are(utils.clip_grad_norm_)


def register() -> None:
    """Import what registers names with fairseq; in its commands, our errors are one line from here on."""
    for module in (*(f"{__name__}.{module}" for module in OURS), *MODULES):
        importlib.import_module(module)
    if runs_fairseq():
        say_errors_plainly()


register()  # a system whose plugin was imported before this package adds its modules later, for another call
