"""n-gram models: estimated or read from ARPA files, and turned into automata with failure arcs.

    kneser_ney.py    modified Kneser-Ney, and smoothed unigrams
    arpa.py          ARPA files
    ngrams.py        sentences as ids, and a back-off model as one trie
    to_automaton.py  … as an automaton
    folds.py         cross-fitted models, and whether there is room for them
    background.py    all of it: from a text or a file to an automaton, whose weights may be changed
"""
