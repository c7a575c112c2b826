"""Weighted automata over the dictionary: languages and n-grams as backgrounds.

automaton.py holds the arrays; reading.py is the door that reads a file of any kind; text_format.py, openfst.py,
regular.py, grammar.py and characters.py make automata, trimming.py makes them end; backgrounds/automaton.py weighs
words with them.
"""
