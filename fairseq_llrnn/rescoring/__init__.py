"""N-best lists rescored: weights, their tuning, and the cache of scores."""
