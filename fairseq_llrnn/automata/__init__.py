"""Weighted automata over the dictionary: languages and n-grams as backgrounds (backgrounds/automaton.py).

    automaton.py         the arrays, and what is sound
    flattening.py        failures that end in nothing, written out as arcs
    tables.py            what each state changes of the masses of signatures
    trimming.py, mass.py dead ends and distances to the end; whether all strings together have a finite weight
    reading.py           the entry point: an automaton from a file of any format, over the names in symbols.py
    text_format.py       OpenFst's text, and failures      openfst.py     OpenFst's binary files (pynini)
    regular.py           regular expressions over words
    grammar.py           context-free, bounded in depth or length (grammar_file.py, grammar_bounds.py)
    characters.py        words spelled in characters
    nondeterministic.py  what readers make first, and the way to a deterministic automaton
    shared_nodes.py      acyclic automata, minimal from the outset
    budget.py            how much work and memory one may cost
"""
