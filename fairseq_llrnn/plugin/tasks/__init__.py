"""Tasks.

    task.py               base of all tasks: check options, resume exactly
    prior_task.py         base of tasks with a prior: load it, search
    language_modeling.py  llrnn_language_modeling
    translation.py        llrnn_translation
    source_prior.py       the prior of a source's words
    evidence_options.py   options of a translation's evidence
"""
