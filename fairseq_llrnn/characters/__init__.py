"""Words that a network reads by their characters, on either side of a translation.

spellings.py   ids of words -> rows of symbols
kept_rows.py   rows of words that are used again while weights do not change
input.py       what a head reads, alone or beside features
neighbours.py  words whose vectors are near
embedding.py   ids of words -> vectors, in the place of a table with a row per word (source.py: of older models)
"""
