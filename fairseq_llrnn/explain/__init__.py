"""Why a word has its probability: the terms of its score.

    explanation.py  log p = log b + aᵀφ − log Z, term by term
    source.py       the words of the source that count, and evidence slots
    pictures.py     PNG files, and matplotlib
"""
