"""The log-linear output layer: exact over signatures, or with a sample of them.

    records.py              what travels between a network, a head, a criterion and a search
    class_source.py         the contract: rows and scores of classes beside the signatures
    normalisers.py          p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over signatures; the contract: how log Z is summed
    sampled.py              … over a sample of the signatures
    feature_weights.py      a row of weights per feature, composed into a row per signature
    learned_temperature.py  the network chooses how far a background counts
    context_classes.py      classes that exist in one context only
"""
