"""Weighted automata over the dictionary: languages and n-grams as backgrounds (backgrounds/automaton_background.py).

automaton.py         the arrays, and their checks
trimming.py          dead ends, distances to the end, failures that end in nothing
limits.py            limits of work and memory, and of the total weight of all strings
automaton_files.py   files of all formats
symbols.py           the dictionary for readers: known, unknown and impossible symbols
text_format.py       OpenFst's text, and failures
regular.py           regular expressions over words
grammar.py           context-free, bounded in depth or length
grammar_file.py      files of grammars, and their bounds
word_characters.py   words spelled in characters
nondeterministic.py  nondeterministic automata of readers, and their determinisation
shared_nodes.py      acyclic automata, minimal during construction
"""
