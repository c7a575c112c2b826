"""What the system brings for fairseq; importing it announces the task, the model and the criterion.

    task.py       --task discourse; examples in batches, each of one objective
    model.py      --arch discourse_encoder
    criterion.py  --criterion discourse
    encoding.py   vectors of sentences from a checkpoint
"""

from fairseq.criterions import register_criterion
from fairseq.models import register_model
from fairseq.tasks import register_task

from fairseq_llrnn.plugin.announced import announce

announce(register_task, f"{__name__}.task", "discourse")
announce(register_model, f"{__name__}.model", "discourse_encoder")
announce(register_criterion, f"{__name__}.criterion", "discourse")
