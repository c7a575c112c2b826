"""Terminology constraints: required words and phrases of a translation, whose inflected forms the network chooses.

    tsv_file.py       term files (TSV) and their storage on disk
    tbx_file.py       term files in TBX
    form_analyses.py  morphological analyses of forms, completed by rules; agreement between words
    phrases.py        forms of phrases, derived from the forms of their words
    groups.py         terms as groups of evidence strings
    terms.py          term matching in source sentences, and the forms of terms
    invented_terms.py terms that training derives from its targets
    evidence.py       the evidence kind `terms`
    explain.py        options of `llrnn explain`
"""

MUST, MAY = "must", "may"  # values of --term-strength
