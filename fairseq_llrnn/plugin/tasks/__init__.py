"""Tasks and criterion.

<<<<<<< HEAD
    own.py                what all tasks do: check options, resume exactly
    base.py               what those with a prior do: load it, search
=======
    base.py               what all tasks do: load a prior, resume exactly, search
>>>>>>> 85d2c57 (Classify texts: a task, two models, llrnn classify)
    language_modeling.py  llrnn_language_modeling
    translation.py        llrnn_translation
    classification.py     llrnn_classification
    criterion.py          log_linear: −log p(target | K)
"""
