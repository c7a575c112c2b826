"""The rim: the only place that imports fairseq. Importing it registers the task, the model and the criterion.

    checkpoints.py   safe loading of checkpoints
    expressions.py   options that are Python expressions, evaluated without running code
    tasks.py         llrnn_language_modeling: the host's task with a prior
    decoder.py       what every decoder of ours ends in: the log-linear output layer and a background
    recurrent_decoder.py, models.py   llrnn_lm
    load.py          one of our models from a checkpoint, to look into it
    criterions.py    log_linear
"""

from fairseq_llrnn.plugin import checkpoints, criterions, models, tasks

checkpoints.install()

__all__ = ["checkpoints", "criterions", "models", "tasks"]
