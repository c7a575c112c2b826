"""n-gram models: estimated or read from ARPA files, and turned into automata with failure arcs.

    unigram.py       from counts to smoothed probabilities of words
    kneser_ney.py    modified Kneser-Ney
    arpa.py          ARPA files
    ngrams.py        a back-off model as one trie
    to_automaton.py  … as an automaton
    reweighing.py    shorter histories, temperature, normalisation
    folds.py         cross-fitted models, and whether there is room for them
    background.py    all of it: from a text or a file to an automaton
"""
