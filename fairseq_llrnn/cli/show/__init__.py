"""`llrnn show`: what a prior knows, as a whole or about single words. Needs neither model nor fairseq."""
