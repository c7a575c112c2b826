"""Commands `llrnn rare-words`: rare words as annotated unknown ones, and their restoration (Luong et al. 2015)."""

SOURCE_WORDS, TRANSLATIONS = "source-words.txt", "translations.tsv"  # in the folder of `annotate`
