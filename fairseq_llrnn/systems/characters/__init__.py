"""Words that a network reads by their characters, on either side of a translation (README.md).

    network.py     a vector for a word from its characters
    embedding.py   ids of words -> vectors, in the place of a table with a row per word; how words are spelled
    input.py       what a head reads, alone or beside features
"""
