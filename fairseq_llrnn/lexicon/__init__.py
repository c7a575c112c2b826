"""Lexical features of words before training, from all sources, in one table.

lexicon_table.py  the table: rows, its file, and the features in it
options.py        the sources, and the spelling of the text
merge_sources.py  merges the lexicons of the options into one table
readers/          one reader for each kind of file: treebanks, lexicons, analysers, values
languages/        packages with data of languages
segments.py       words cut into segments, by files or Morfessor, as rows
unknown_word_features.py  guessed features of words that no lexicon has
guessing.py       guesses of a word's features from its spelling
morphemes.py      features of words from their segments
lemmas.py         lemmas of words, listed or by their endings; forms that a text lacks
features.py       names and values of features
held_out.py       detects sentences of a validation or test text in a source
language_check.py checks whether a source is of the text's language
casing.py         lower and upper case by the rules of a language
"""
