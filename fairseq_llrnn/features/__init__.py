"""The features of a dictionary's words (what is known of words otherwise: lexicon/).

dictionary.py     symbols, counts, which may be predicted; ids of strings that it lacks, and of texts
text_check.py     why words of a text are outside a dictionary
spelling.py       shapes, suffixes, and the user's own expressions
subwords.py       features of subword pieces
feature_table.py  all features in order, a sparse row per word, words with equal rows
"""
