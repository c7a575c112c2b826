"""Commands `llrnn phrases …`: phrase tables in the format of Moses, extracted from a bitext, scored by models."""
