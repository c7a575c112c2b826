"""Searches over candidates, slots and within a limit of length.

    generator.py      fairseq's generator over columns (columns.py: what they stand for)
    ensemble.py       the models of a search
    scorer.py         fairseq's scorer of references
    length_limit.py   whether a search can end within its limit
    empty_sources.py  an empty line is not searched for
    spell_unknown.py  unknown words of what was generated, spelled
"""
