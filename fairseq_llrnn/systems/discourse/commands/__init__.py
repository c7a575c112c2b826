"""The sub-commands of `llrnn` that this extra brings."""
