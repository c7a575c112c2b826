"""Weighted automata over the dictionary: languages and n-grams as backgrounds (backgrounds/automaton.py).

    automaton.py         the arrays, and what is sound
    trimming.py          dead ends, distances to the end, failures that end in nothing
    limits.py            how much work and memory one may cost; whether all strings together have a finite weight
    reading.py           an automaton from a file of any format, over the names in symbols.py; OpenFst's binary files
    text_format.py       OpenFst's text, and failures
    regular.py           regular expressions over words
    grammar.py           context-free, bounded in depth or length (grammar_file.py: files, and bounds)
    characters.py        words spelled in characters
    nondeterministic.py  what readers make first, and the way to a deterministic automaton
    shared_nodes.py      acyclic automata, minimal from the outset
"""
