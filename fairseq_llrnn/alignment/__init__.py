"""Word alignment of a bitext, and the translation table t(x | s) made of it.

    parallel_text.py      a parallel text in the words of two dictionaries
    aligners.py           IBM Model 1, eflomal: from a parallel text to a table
    translation_table.py  t(target word | source word), sparse
"""
