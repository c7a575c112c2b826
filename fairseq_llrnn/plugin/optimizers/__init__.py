"""Optimisers for fairseq that take sparse gradients, of which an update needs few rows."""
