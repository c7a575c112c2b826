"""Searches over candidates, slots and within a limit of length.

    generator.py      fairseq's generator over columns
    columns.py        … what they stand for, and the models that are asked for them; scores of references
    length.py         whether a search can end within its limit; an empty line is not searched for
    spell_unknown.py  unknown words of what was generated, spelled
"""
