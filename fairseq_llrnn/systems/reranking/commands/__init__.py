"""`llrnn phrases …` (fairseq_llrnn/cli/main.py says what a module of commands offers)."""
