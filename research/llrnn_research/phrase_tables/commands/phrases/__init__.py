"""Commands `llrnn phrases …`: phrase tables in the format of Moses."""
