"""Phrase pairs of an aligned bitext, in Moses' format (docs/guides/rescoring.md); `llrnn rescore` reads such a table.

    extraction.py  the pairs that agree with an alignment, and their scores
    commands/      `llrnn phrases extract`; `llrnn phrases score` adds the score of a model
"""
