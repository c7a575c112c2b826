"""Backgrounds b(K, x): the weight of every next token that is known before training.

    base.py                 the contract: a state machine over tokens
    exact_buffers.py        … buffers that never go to half precision
    static.py               one weight per word, the same everywhere
    automaton.py            n-grams, grammars, word lists
    automaton_tables.py     … their arcs, steps, masses
    automaton_topk.py       … their best members
    cache.py                the last words
    lexical.py              translations of the words of the source
    lexical_mixture.py      … of the sentences of a batch: a factor, and more for a few words
    source_rows.py          … rows of links of words and of their lemmas, the sentence at hand left out
    form_shares.py          … a lemma shared among its forms
    language_model.py       another trained model
    product.py              backgrounds made of backgrounds: all must allow a word
    mixture.py              … a weighted sum
    tempered.py             … with a temperature
    combined.py             … what these share
    simplified.py           … products and temperatures that are atoms again
    several_roots.py        … best members under mixtures of static ones
    explicit_background.py  backgrounds that list the words which they weigh otherwise than their root
    explicit_words.py       … the lists
    listed_classes.py       … masses and best members from the lists
    source_conditioned.py   backgrounds that depend on the source
    masses.py               log masses that differ from one row at few places
    log_sums.py             sums of weights by their logarithms
"""
