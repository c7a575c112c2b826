"""Beam search over candidates and slots, with a length limit.

    generator.py      fairseq's generator over columns
    columns.py        the tokens of columns, the models that compute them, and scores of references
    length.py         whether a complete string fits the length limit, empty lines
    spell_unknown.py  spell the unknown words of hypotheses
"""
