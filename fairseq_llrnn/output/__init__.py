"""The log-linear output layer: exact over signatures, or with a sample of them.

    normalisation.py        the contract: hidden states, masses -> probabilities of classes (exact.py: all)
    log_linear.py           p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over signatures
    feature_weights.py      a row of weights per feature, composed into a row per signature
    fused_loss.py           log p of a class, for training
    class_sampling.py       a sample of the signatures (sampled_log_linear.py: the output over it)
    learned_temperature.py  the network chooses how far a background counts
    context_classes.py      classes that exist in one context only
    context_sources.py      … the contract of their sources
    context_words.py        … which words they have
"""
