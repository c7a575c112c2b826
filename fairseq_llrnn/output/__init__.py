"""The log-linear output layer: exact over signatures, or with a sample of them.

records.py              what travels between a network, a head, a criterion and a search
class_source.py         the contract: rows and scores of classes beside the signatures
normalisers.py          the contract: how log Z is summed; the exact sum
log_linear.py           p(x | K) ∝ b(K, x) exp(a(K)ᵀφ(x)) over signatures
feature_weights.py      a row of weights per feature, composed into a row per signature
sampled_log_linear.py   log Z over a sample of the signatures (class_sampling.py)
output_tree.py          … over a tree of them: which one, from options, files and checkpoints
tree_log_linear.py      the output over a tree of signatures
tree_normalisation.py   … what the head asks of it
tree_layer.py           … tables, and rows of internal nodes
tree_masses.py          … masses of nodes
tree_scores.py          … scores of visits to nodes, and sums over their children (tree_visits.py: which visits)
tree_all_classes.py     … log p of all classes; tree_single.py: of few, without a gradient
tree_choices.py         … what an explanation says of it
tree_search.py          … the most probable classes
learned_tree.py         … a tree that is learned beside its rows (tree_statistics.py: what it counts)
learned_temperature.py  the network chooses how far a background counts
context_classes.py      classes that exist in one context only
context_sources.py      … the contract of their sources
context_words.py        … which words they have
"""
