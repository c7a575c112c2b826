"""What is known of words before training, wherever it comes from.

options.py        where knowledge of words comes from, and how the text spells them
readers/          treebanks, lexicons, analysers, tables, words cut into segments
languages/        packages that know the words of languages
features.py       which features a word can have
language_check.py whether a source is of the text's language
guessing.py       features of words that no source knows, from their spelling
lemmas.py         lemmas of words, listed or guessed (lemma_rules.py: by their endings)
word_forms.py     forms of lemmas, with their features
form_analyses.py  analyses of forms, completed by rules
named_places.py   places that options name: lexicon:FILE, lemmas:CODE
more_forms.py     forms that a text lacks, for a dictionary
morphemes.py      prefixes, stem and endings of words cut into segments (morfessor_segments.py: by Morfessor)
"""
