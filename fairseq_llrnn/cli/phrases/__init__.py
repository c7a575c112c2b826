"""`llrnn phrases`: phrase tables in the format of Moses, extracted from a bitext and scored by translation models."""
