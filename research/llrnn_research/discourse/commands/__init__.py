"""Commands of `llrnn` in this system."""
