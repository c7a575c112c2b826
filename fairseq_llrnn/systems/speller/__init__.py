"""A network of characters that spells unknown words, beside the n-grams of their open class.

    network.py  the network, given the state of the model
    sizes.py    how large it is
    spelled.py  what it reads and writes
    search.py   strings drawn, or the best ones
    speller.py  registers it as the speller of a kind of open vocabularies
"""
