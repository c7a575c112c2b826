"""The integration layer: the only place that imports fairseq. Importing it registers what fairseq's options name.

    compat/    fairseq made safe and suitable: checkpoints, options, dictionaries, loading
    data/      data sets that the tasks give to training
    models/    llrnn_lm, llrnn_lbl, llrnn_transformer_lm, llrnn_lstm, llrnn_transformer; decoders that they share
    search/    searches over candidates and slots, within a limit of length
    tasks/     llrnn_language_modeling, llrnn_translation, and the criterion log_linear
    scoring/   log-probabilities of sentences and texts, why each word has its own
    commands.py  fairseq's commands as `llrnn train` and its sisters run them (command_lines.py: what they print)
    kinds.py      what they do for each task
    announced.py  names of tasks, models, … are known before their modules are imported

It changes nothing for other tasks but where the norm of gradients is computed (compat/counted_gpus.py): compat/ says
what is done for ours alone. Users call `fairseq_llrnn.register()`; fairseq's commands find fairseq_llrnn/tasks, as they
do in every --user-dir. What systems and other packages bring for fairseq is found by `fairseq_llrnn.registry`.
"""

from fairseq import utils
from fairseq.criterions import register_criterion
from fairseq.models import register_model, register_model_architecture
from fairseq.tasks import register_task

from fairseq_llrnn import registry
from fairseq_llrnn.plugin.announced import announce
from fairseq_llrnn.plugin.compat.counted_gpus import clip_where_gradients_are
from fairseq_llrnn.plugin.compat.task_checkpoints import load_safely
from fairseq_llrnn.plugin.compat.user_errors import runs_fairseq, say_errors_plainly

for name in ("language_modeling", "translation"):
    announce(register_task, f"{__name__}.tasks.{name}", f"llrnn_{name}")
announce(register_model, f"{__name__}.models.llrnn_lm", "llrnn_lm", "llrnn_lbl")
announce(register_model, f"{__name__}.models.llrnn_transformer_lm", "llrnn_transformer_lm")
announce(register_model, f"{__name__}.models.llrnn_lstm", "llrnn_lstm")
for module, names in {
    "llrnn_lm": ("llrnn_lm_small",),
    "llrnn_lstm": ("llrnn_lstm_multi30k", "llrnn_lstm_iwslt"),
    "llrnn_transformer": ("llrnn_transformer", "llrnn_transformer_multi30k", "llrnn_transformer_iwslt"),
    "llrnn_transformer_lm": ("llrnn_transformer_lm_small", "llrnn_transformer_lm_big"),
}.items():
    announce(register_model_architecture, f"{__name__}.models.{module}", *names)
announce(register_criterion, f"{__name__}.tasks.criterion", "log_linear")
load_safely()
utils.clip_grad_norm_ = clip_where_gradients_are(utils.clip_grad_norm_)
registry.load_all("plugins")


def say_errors_of_commands() -> None:
    """In a command of fairseq's, our errors are one line from here on, whichever task it names."""
    if runs_fairseq():
        say_errors_plainly()
