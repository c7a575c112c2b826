"""The features of a dictionary's words (what is known of words otherwise: lexicon/).

dictionary.py     symbols, counts, and which may be predicted
text_words.py     words of large texts, counted or as ids
spelling.py       shapes and suffixes
user_patterns.py  a user's regular expressions (expression_limits.py: what they may not ask for)
subwords.py       features of subword pieces
feature_table.py  all features in order, and a sparse row per word
signatures.py     words with equal rows
identities.py     which words have an identity, and which share a signature
open_words.py     ids of strings that a dictionary lacks
"""
