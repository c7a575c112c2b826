"""Infinite vocabulary: every string of Unicode characters is a word with a probability.

Words outside the dictionary belong to *open classes*: unknown feminine plural nouns, unknown numbers. A class has a
feature row, a share of the background of <unk>, and a distribution over strings: character n-grams, for numbers a
geometric part, and optionally a lexicon.

vocabulary.py        the classes and arrays of a prior
classes.py           the classes, and their rare words
characters.py        p(string | class), by character n-grams
number_strings.py    the same for numbers; distributions over all strings
alphabet.py          strings as rows of symbols
open_table.py        ids of strings, and their log-probabilities in the classes
open_strings.py      strings in a head: input ids, and scores
spelling.py          sampled strings, or the most probable one
speller.py           a network that spells, in addition to the n-grams
spelled.py             its input and output
lexicon_background.py  a lexicon in its background
speller_sizes.py       its sizes

spelling_lexicon.py  a lexicon in the classes, as a mixture of
listed_strings.py      the words of a list
compounds.py           compounds of them
affixed_strings.py     the forms of a hunspell dictionary, by
affix_grammar.py         its possible derivations, stored by
stored_grammar.py        this file
capitalised.py         strings of these with a capital
spelling_classes.py    the class of a word, guessed from its spelling
lexicon_weights.py   estimates it
"""
