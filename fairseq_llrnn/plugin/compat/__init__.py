"""fairseq made safe and suitable.

    own_tasks.py         all of it, for our tasks alone
    safe_checkpoints.py  checkpoints are read as data (checkpoint_errors.py: what is wrong with one)
    safe_eval.py         options written as Python are not run
    user_errors.py       a user's error is one line
    loading.py           models from checkpoints
    dictionary_check.py  a model over other words is refused
    open_dictionary.py   a dictionary with strings outside itself
    layer_pruning.py     --encoder-layers-to-keep, --decoder-layers-to-keep
"""
