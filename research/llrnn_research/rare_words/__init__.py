"""Rare words as annotated unknown ones (Luong et al. 2015), for any translation system.

docs/guides/copying-and-terminology.md describes the commands.

    annotations.py  annotations of a bitext, and their replacement by words
    commands/       `llrnn rare-words annotate`, `llrnn rare-words restore`
"""
