"""Tasks and criterion.

    base.py               what both tasks do: load a prior, resume exactly, search
    language_modeling.py  llrnn_language_modeling
    translation.py        llrnn_translation
    criterion.py          log_linear: −log p(target | K)
"""
