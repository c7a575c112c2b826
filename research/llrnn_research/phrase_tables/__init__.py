"""Phrase tables of Moses, and encoder-decoders that score their phrases (Cho et al. 2014).

    phrase_table.py  phrase tables, and how well they cover a hypothesis
    extraction.py    phrase pairs of an aligned bitext, and their scores
    commands/        `llrnn phrases extract`, `llrnn phrases score`, `llrnn phrases cover`
"""
