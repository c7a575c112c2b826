"""The integration layer: the only place that imports fairseq. Importing it registers what fairseq's options name.

    compat/    fairseq made safe and suitable: checkpoints, options, dictionaries, loading
    data/      data sets that the tasks give to training
    models/    llrnn_lm, llrnn_lbl, llrnn_lstm, llrnn_encoder_decoder, llrnn_rctm, llrnn_transformer, llrnn_bag,
               llrnn_classifier; decoders that they share
    optimizers/  llrnn_adagrad, llrnn_adam, which take sparse gradients
    search/    searches over candidates and slots, within a limit of length
    tasks/     llrnn_language_modeling, llrnn_translation, llrnn_classification, and the criterion log_linear
    scoring/   log-probabilities of sentences and texts, why each word has its own, labels of texts
    commands.py  fairseq's commands as `llrnn train` and its sisters run them (command_lines.py: what they print)

It changes nothing for other tasks: own_tasks.py in compat/ says what is done for ours alone. Users call
`fairseq_llrnn.register()`; fairseq's commands find fairseq_llrnn/tasks, as they do in every --user-dir. Every file of
models/, optimizers/ and tasks/ is imported, so that what it registers is known; so is what systems and other packages
bring for fairseq (registry.py).
"""

import importlib
import pkgutil

from fairseq_llrnn import registry
from fairseq_llrnn.plugin import models, optimizers, tasks
from fairseq_llrnn.plugin.compat.own_tasks import load_safely_for
from fairseq_llrnn.plugin.compat.user_errors import runs_fairseq, say_errors_plainly
from fairseq_llrnn.plugin.tasks.own import OwnTask

for folder in (models, optimizers, tasks):
    for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        importlib.import_module(module.name)
load_safely_for(OwnTask)
registry.load_all("plugins")


def say_errors_of_commands() -> None:
    """In a command of fairseq's, our errors are one line from here on, whichever task it names."""
    if runs_fairseq():
        say_errors_plainly()
