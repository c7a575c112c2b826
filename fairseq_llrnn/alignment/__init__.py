"""Word alignment of a bitext, and the translation table t(x | s) made of it.

    bitext.py             sentence pairs as arrays of word ids, of two dictionaries or of all words, and links of tokens
    aligners.py           IBM Model 1 and eflomal, and the translation table that follows
    translation_table.py  t(target word | source word), sparse
    source_lemmas.py      lemmas and their forms; translations of lemmas, which rare forms fall back on
    word_links.py         links in both directions, and one alignment made of both
"""
