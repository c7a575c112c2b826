"""The parts for fairseq. Importing this module announces the task, the model and the criterion.

    task.py       --task discourse: examples in batches, each of one objective
    model.py      --arch discourse_encoder
    criterion.py  --criterion discourse
    encoding.py   vectors of sentences from a checkpoint
"""


from fairseq_llrnn.plugin.names import announce

announce(f"{__name__}.task", f"{__name__}.model", f"{__name__}.criterion")
