"""Explanations of a word's probability: the terms of its score.

explanation.py  log p = log b + aᵀφ − log Z, term by term
source_terms.py  the relevant words of the source, and evidence slots
"""
