"""Infinite vocabulary: every string of Unicode characters is a word, and has a probability.

Words outside the dictionary belong to *open classes*: unknown feminine plural nouns, unknown numbers. A class has a
feature row, a share of the background of <unk>, and a distribution over strings, made of character n-grams and, for
numbers, of a geometric part.

    vocabulary.py      what a prior keeps: classes, and arrays of numbers
    classes.py         the classes, and the rare words that they are made of
    characters.py      p(string | class), by character n-grams (numbers.py: and of numbers)
    alphabet.py        strings as rows of symbols
    table.py           ids of strings, and what the classes say of each
    open_strings.py    … how a head reads and scores strings
    spelling.py        strings drawn, or the best one
"""
