"""fairseq made safe and suitable.

    own_tasks.py         all of it, for our tasks alone
    safe_checkpoints.py  checkpoints are read as data (checkpoint_errors.py: what is wrong with one)
    checkpoint_files.py  what a checkpoint's file must look like before it is read
    checkpoint_tensors.py what is read of it is no larger than the file
    model_sizes.py       what is built from it is no larger than what it holds
    whole_checkpoints.py checkpoints are written whole, and the newest whole one is gone on from
    option_checks.py     values of fairseq's options that it finds out about too late
    safe_eval.py         options written as Python are not run
    user_errors.py       a user's error is one line
    loading.py           models from checkpoints
    moved_folders.py     … whose prior or data are elsewhere now (source_priors.py: those of the source)
    each_model.py        … that fairseq's commands load
    dictionary_check.py  a model over other words is refused
    data_folders.py      data in several folders have the same words
    two_dictionaries.py  tasks with a source and a target
    open_dictionary.py   a dictionary with strings outside itself
    interactive_lines.py the lines of fairseq-interactive and of raw text, terms behind a tab among them
    processes.py         several processes that train one model
"""
