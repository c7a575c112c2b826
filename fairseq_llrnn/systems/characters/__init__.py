"""Words represented by their characters, on either side of a translation (README.md).

    network.py     a vector for a word from its characters, and an embedding in place of a table
    input.py       the input of a head (alone or with features), and of an encoder
    neighbours.py  words with similar vectors
    show.py        `llrnn show --neighbours`
"""
