"""Words that a network reads by their characters, on either side of a translation (README.md).

    network.py     a vector for a word from its characters; ids of words -> vectors, in the place of a table
    input.py       what a head reads, alone or beside features; what an encoder reads
    neighbours.py  words whose vectors are near; show.py: in `llrnn show`
"""
