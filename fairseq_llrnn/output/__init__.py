"""The log-linear output layer, exact or with a sample of the signatures.

records.py              records that a network, a head, a criterion and a search exchange
class_source.py         interface: rows and scores of classes other than the signatures
normalisers.py          p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over signatures; interface: how log Z is summed
sampled.py              the same over a sample of the signatures
feature_weights.py      a row of weights per feature, composed into a row per signature
learned_temperature.py  a learned exponent of the background
context_classes.py      classes that exist in one context only
context_source.py       interface: the words of such classes
class_table.py          their masses and shares, by context
"""
