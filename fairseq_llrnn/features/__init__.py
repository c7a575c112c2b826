"""What is known of words before training.

dictionary.py     symbols, counts, and which may be predicted
text_words.py     words of large texts, counted or as ids
casing.py         lower and upper case by the rules of a language
lexicon.py        which features a word can have
readers/          treebanks, lexicons, analysers, tables, words cut into segments
language_check.py whether a source is of the text's language
languages/        packages that know the words of languages
guessing.py       features of words that none of these knows, from their spelling
lemmas.py         lemmas of words, listed or guessed (lemma_rules.py: by their endings)
word_forms.py     forms of lemmas, with their features
form_analyses.py  analyses of forms, completed by rules
agreement.py      which forms of several words agree
named_places.py   places that options name: lexicon:FILE, lemmas:CODE
more_forms.py     forms that a text lacks, for a dictionary
spelling.py       shapes and suffixes
morphemes.py      prefixes, stem and endings of words cut into segments (morfessor_segments.py: by Morfessor)
user_patterns.py  a user's regular expressions (expression_limits.py: what they may not ask for)
subwords.py       features of subword pieces
feature_table.py  all features in order, and a sparse row per word
signatures.py     words with equal rows
identities.py     which words have an identity, and which share a signature
open_words.py     ids of strings that a dictionary lacks
"""
