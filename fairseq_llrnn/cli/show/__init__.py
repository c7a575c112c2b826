"""`llrnn show`: show a prior as a whole, or single words of it. Needs neither a model nor fairseq."""
