"""Infinite vocabulary: every string of Unicode characters is a word, and has a probability.

Words outside the dictionary belong to *open classes* (classes.py): unknown feminine plural nouns, unknown numbers. A
class has a feature row, a share of the background of <unk>, and a distribution over strings (strings.py), made of
character n-grams (characters.py) and, for numbers, of a geometric part (numbers.py). mixture.py says what a network
makes of them.
"""
