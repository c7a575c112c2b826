"""The log-linear output layer: exact over signatures, or with a sample of them.

    normalisation.py        the contract: hidden states, masses -> probabilities of classes (exact.py: all)
    log_linear.py           p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over signatures
    feature_weights.py      a row of weights per feature, composed into a row per signature
    class_sampling.py       a sample of the signatures (sampled_log_linear.py: the output over it)
    tree_log_linear.py      the output over a tree of signatures
    tree_normalisation.py   … what the head asks of it
    tree_layer.py           … tables, and rows of internal nodes
    tree_masses.py          … masses of nodes
    tree_scores.py          … scores of visits to nodes, and sums over their children (tree_visits.py: which visits)
    tree_all_classes.py     … log p of all classes; tree_single.py: of few, without a gradient
    tree_search.py          … the most probable classes
    learned_tree.py         … a tree that is learned beside its rows (tree_statistics.py: what it counts)
    learned_temperature.py  the network chooses how far a background counts
    context_classes.py      classes that exist in one context only
    context_sources.py      … the contract of their sources
    context_words.py        … which words they have
    scored_class.py         … one that stands for classes with rows of their own
"""
