"""What is known of words before training, wherever it comes from: one table.

table.py          the table: rows, its file, and the features in it
options.py        who is asked, and how the text spells words
merge_sources.py  the lexicons that the options name, in one table
readers/          who reads what: treebanks, lexicons, analysers, numbers; rows of words cut into segments
languages/        packages that know the words of languages
segments.py       words cut into segments, by files or Morfessor, as rows
unknown_word_features.py  guessed features of words that no lexicon has
guessing.py       features of a word from its spelling: guessed, or of its morphemes
lemmas.py         lemmas of words, listed or by their endings; forms that a text lacks
features.py       which features a word can have
held_out.py       whether a source has the sentences of a validation or test text
language_check.py whether a source is of the text's language
casing.py         lower and upper case by the rules of a language
"""
