"""Evidence: strings of a source sentence that its translation may have to contain, each a *slot* of that sentence.

    rules.py     what counts as evidence, and as which target words; kept in the prior
    features.py  the features of a string outside the vocabulary
    building.py  a prior with evidence, and with less background for words that need it
    table.py, slots.py   the strings of a batch and their slots (background.py scores them)
"""
