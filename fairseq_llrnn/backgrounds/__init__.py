"""Backgrounds b(K, x): the weight of every next token before the network is trained.

background.py           the interface: a state machine over tokens, and views of its weights; weights without context
cached.py               values that are computed once
exact_buffers.py        tables that keep their precision
class_weights.py        log masses that differ from one row in few places, sums of weights in log space
members.py              the best members of classes, from several lists
automaton_background.py  n-grams, grammars, word lists
automaton_tables.py     their arcs, steps and masses
cache_background.py     the last words
source_rows.py          translations of source words: rows of links, and shares of forms
lexical_background.py   translations of the words of the source
language_model.py       another trained model
algebra.py              combinations: products, temperatures
by_source.py            backgrounds that depend on the source
states.py               states of hypotheses: select, repeat, join
mixture.py              weighted sums, fast products and temperatures
explicit_background.py  backgrounds that list the words whose weights differ from their root
listed_view.py          masses and best members of such lists
several_roots.py        best members under a mixture of several roots
"""
