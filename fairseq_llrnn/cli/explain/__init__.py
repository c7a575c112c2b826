"""`llrnn explain`: explain the probability of each word of a sentence or a translation."""
