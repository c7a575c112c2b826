"""Tasks.

    task.py               what all tasks do: check options, resume exactly
    base.py               what those with a prior do: load it, search
    language_modeling.py  llrnn_language_modeling
    translation.py        llrnn_translation
    source_prior.py       what they know of a source
    evidence_options.py   options of a translation's evidence
"""
