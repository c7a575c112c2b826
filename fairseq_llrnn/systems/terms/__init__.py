"""Terms: words and phrases that a translation has to have, in forms that the network chooses.

    tsv_file.py   files of terms: a phrase of the source, a lemma of the target; terms on disk
    tbx_file.py   those in TBX
    form_analyses.py  analyses of forms, completed by rules; which forms of several words agree
    phrases.py    the forms of phrases, from those of their words; the words of terms
    groups.py     terms as groups of the evidence's strings
    terms.py      which phrases of a sentence ask for which term, and the forms of terms
    invented_terms.py   terms that training requires
    evidence.py   the kind of evidence that a prior with terms has
    explain.py    options of `llrnn explain`
"""
