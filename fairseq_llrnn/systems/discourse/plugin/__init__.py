"""What the system brings for fairseq; importing it registers the task, the model and the criterion.

    dataset.py    examples in batches, each of one objective
    task.py       --task discourse
    model.py      --arch discourse_encoder
    criterion.py  --criterion discourse
    encoding.py   vectors of sentences from a checkpoint
"""

from fairseq_llrnn.systems.discourse.plugin import criterion, model, task

__all__ = ["criterion", "model", "task"]
