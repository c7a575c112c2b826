"""Word alignment of a bitext, and its translation table t(x | s).

    bitext.py             sentence pairs as arrays of word ids, of two dictionaries or of all words, and links of tokens
    binarized_bitext.py   read the bitext of a folder of fairseq-preprocess, without fairseq
    aligners.py           IBM Model 1 and eflomal, and the resulting translation table
    translation_table.py  t(target word | source word), sparse
    source_lemmas.py      lemmas and their forms; translations of lemmas, the back-off of rare forms
    word_links.py         links in both directions, combined into one alignment
"""
