"""Words that a network reads by their characters, on either side of a translation (README.md).

    network.py     a vector for a word from its characters
    spellings.py   ids of words -> rows of symbols
    embedding.py   ids of words -> vectors, in the place of a table with a row per word (kept_rows.py: used again)
    source.py      … of sources, also of older models
    input.py       what a head reads, alone or beside features
    neighbours.py  words whose vectors are near
"""
