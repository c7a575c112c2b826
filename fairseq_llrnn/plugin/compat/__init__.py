"""fairseq made safe and suitable.

    task_checkpoints.py  all of it, for our tasks alone, and for each model that fairseq's commands load
    safe_checkpoints.py  checkpoints are read as data (checkpoint_errors.py: what is wrong with one)
    plain_arrays.py      numpy's arrays and numbers in them
    checkpoint_sizes.py  a checkpoint's file, what is read of it, what is built from it: each no larger than the last
    resuming.py          what they lack for a training that goes on
    option_checks.py     values of fairseq's options that it finds out about too late
    user_errors.py       a user's error is one line
    loading.py           models from checkpoints
    moved_folders.py     … whose priors or data are elsewhere now
    dictionaries.py      a model over other words is refused; a dictionary with strings outside itself
    interactive_lines.py the lines of fairseq-interactive and of raw text, terms behind a tab among them
    counted_gpus.py      what fairseq concludes from the GPUs that it sees
"""
