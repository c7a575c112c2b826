"""The features of a dictionary's words (their lexical features come from lexicon/).

dictionary.py     symbols, counts, predictable symbols; ids of texts and of strings outside the dictionary
text_check.py     reasons why words of a text are outside a dictionary
spelling_features.py  shapes, suffixes, and the user's regular expressions
subwords.py       features of subword pieces
feature_table.py  all features in order, a sparse row per word, words with equal rows
"""
