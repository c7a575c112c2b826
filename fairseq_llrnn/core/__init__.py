"""The mathematics of log-linear output layers: pure torch and numpy, no fairseq.

The path data travels, with shapes (V words, F features, S signatures, B batch, T time, N = B·T positions, H hidden,
D embedding):

    words, counts ─ lexicon.py, patterns.py ─> {feature name: value} per word
                  ─ features.py ─────────────> FeatureTable of V rows over F names (sparse φ, and ψ)
                  ─ signatures.py ───────────> class_of (V,) and a FeatureTable of S distinct rows
                  ─ backgrounds/ ────────────> log_mass (·, S) per class, log_share (·,) per word
                  ─ prior.py ────────────────> all of the above as one directory on disk
    tokens (B, T) ─ composition.py ──────────> ψ-embeddings (B, T, D)
                  ─ network.py ──────────────> hidden states (B, T, H)
                  ─ log_linear.py ───────────> log p(x | K): of targets (N,), of all words (N, V), or the best k (N, k)
"""
