"""Infinite vocabulary: every string of Unicode characters is a word, and has a probability.

Words outside the dictionary belong to *open classes*: unknown feminine plural nouns, unknown numbers. A class has a
feature row, a share of the background of <unk>, and a distribution over strings, made of character n-grams and, for
numbers, of a geometric part.

    vocabulary.py      what a prior keeps: classes, and arrays of numbers
    classes.py         the classes, and the rare words that they are made of
    alphabet.py        strings as rows of symbols
    strings.py         p(string | class), of characters.py and numbers.py
    table.py           ids of strings, and what the classes say of each
    mixture.py         what a network makes of the classes
    open_strings.py    … how a head reads and scores strings
    speller.py         what spells strings beside the n-grams, where a system brings it
    spelling.py        strings drawn, or the best one
"""
