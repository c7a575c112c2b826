"""`llrnn rescore`: rank the hypotheses of other systems' n-best lists with log-linear (and other) models."""
