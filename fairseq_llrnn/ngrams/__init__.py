"""n-gram models: estimated or read from ARPA files, and turned into automata with failure arcs.

    kneser_ney.py    modified Kneser-Ney, and smoothed unigrams
    arpa.py          ARPA files
    ngrams.py        sentences as ids, and a back-off model as one trie
    to_automaton.py  … as an automaton
    folds.py         cross-fitted models, and their memory limit
    background.py    from a text or a file to an automaton, with changes of its weights
"""
