"""Word alignment of a bitext, and the translation table t(x | s) made of it."""
