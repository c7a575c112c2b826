"""Infinite vocabulary: every string of Unicode characters is a word with a probability.

Words outside the dictionary belong to *open classes*: unknown feminine plural nouns, unknown numbers. A class has a
feature row, a share of the background of <unk>, and a distribution over strings: character n-grams and, for numbers, a
geometric part.

vocabulary.py      the classes and arrays of a prior
classes.py         the classes, and their rare words
characters.py      p(string | class), by character n-grams
numbers.py         the same for numbers; distributions over all strings
listed_strings.py  the same for the words of a list
spelling_lexicon.py  lists of words in the classes
lexicon_weights.py   their shares, estimated
alphabet.py        strings as rows of symbols
table.py           ids of strings, and their log-probabilities in the classes
open_strings.py    strings in a head: input ids, and scores
spelling.py        sampled strings, or the most probable one
"""
