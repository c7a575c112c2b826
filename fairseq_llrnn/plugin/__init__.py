"""The fairseq plugin: the only package that imports fairseq. `register` registers its tasks, models and options.

    compat/    changes to fairseq: checkpoints, options, dictionaries, loading
    data/      data sets of the tasks
    models/    llrnn_lm, llrnn_lbl, llrnn_transformer_lm, llrnn_lstm, llrnn_transformer, and their decoders
    search/    beam search over candidates and slots, with a length limit
    tasks/     llrnn_language_modeling, llrnn_translation
    criterion.py  log_linear: −log p(target | K)
    scoring/   log-probabilities and explanations of sentences and texts
    commands.py  fairseq's commands, as `llrnn train` and others run them (command_lines.py: their output)
    comparison.py  networks of `llrnn compare`: trained, and scored
    kinds.py      default options of each task
    names.py      names of tasks and models, in fairseq's registries and in checkpoints

Other tasks are unchanged, except for the norm of gradients (compat/counted_gpus.py) and names that
numpy has removed (compat/numpy_names.py). Users call
`fairseq_llrnn.register()`. The package calls it itself if fairseq imports it as its --user-dir.
`fairseq_llrnn.registry` finds the plugins of systems and other packages.
"""

import importlib

from fairseq import utils

from fairseq_llrnn import registry
from fairseq_llrnn.plugin.compat.counted_gpus import clip_where_gradients_are
from fairseq_llrnn.plugin.compat.numpy_names import provide_removed_names
from fairseq_llrnn.plugin.compat.task_checkpoints import load_safely
from fairseq_llrnn.plugin.compat.user_errors import runs_fairseq, say_errors_plainly
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS
from fairseq_llrnn.plugin.models.speller_options import SpellerExtension
from fairseq_llrnn.plugin.names import MODULES

OURS = (
    "tasks.language_modeling", "tasks.translation", "criterion", "models.llrnn_lm", "models.llrnn_transformer_lm",
    "models.llrnn_lstm", "models.llrnn_transformer",
)  # fmt: skip
registry.load_all("plugins")
EXTENSIONS.append(SpellerExtension())  # after systems, as in checkpoints: optimisers number the parameters
load_safely()
provide_removed_names()
utils.clip_grad_norm_ = clip_where_gradients_are(utils.clip_grad_norm_)


def register() -> None:
    """Import the modules that register names with fairseq. In fairseq's commands, print our errors in one line."""
    for module in (*(f"{__name__}.{module}" for module in OURS), *MODULES):
        importlib.import_module(module)
    if runs_fairseq():
        say_errors_plainly()


register()  # a system's plugin that was imported earlier adds its modules later, for another call
