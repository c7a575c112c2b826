"""Make fairseq safe for our tasks, and adapt it to them.

    task_checkpoints.py  loading and saving of checkpoints, for our tasks and for models of fairseq's commands
    safe_checkpoints.py  read checkpoints as data (checkpoint_errors.py: messages for damaged ones)
    plain_arrays.py      numpy's arrays and numbers in checkpoints
    checkpoint_sizes.py  limits: of a checkpoint's file, of the tensors in it, of the model built from it
    resuming.py          state that a resumed training needs, and fairseq does not save
    other_models.py      reject a checkpoint of a model with other options, in a training that resumes
    option_checks.py     check values of fairseq's options early
    user_errors.py       print a user's error in one line
    loading.py           load models from checkpoints
    moved_folders.py     find their priors and data after a move
    data_files.py        reject data sets without sentences
    dictionaries.py      reject a model over other words, a dictionary with strings outside itself
    interactive_lines.py lines of fairseq-interactive and of raw text, with terms after a tab
    counted_gpus.py      correct what fairseq derives from the number of GPUs
    numpy_names.py       names that fairseq uses and numpy has removed
"""
