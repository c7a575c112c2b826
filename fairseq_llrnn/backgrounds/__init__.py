"""Backgrounds b(K, x): the weight of every next token that is known before training.

    base.py                 the contract: a state machine over tokens; one weight per word, whatever the context
    class_weights.py         log masses that differ from one row at few places, and sums of weights by their logarithms
    members.py              the best members of classes, from several lists
    automaton.py            n-grams, grammars, word lists
    automaton_tables.py     … arcs, steps, masses
    cache.py                the last words
    source.py               what source words say: rows of links, and shares of forms
    lexical.py              translations of the words of the source
    language_model.py       another trained model
    algebra.py              backgrounds made of others: products, temperatures, what a source adds
    mixture.py              … a weighted sum; products and temperatures that are as fast as one
    explicit_background.py  backgrounds that list the words which they weigh otherwise than their root
    listed_classes.py       … masses and best members from the lists; those of several roots
"""
