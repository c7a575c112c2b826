"""Commands `llrnn phrases …`, with the interface of fairseq_llrnn/cli/main.py."""
