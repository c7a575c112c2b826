"""n-gram models: read from ARPA files or estimated, and turned into automata with failure arcs."""
