"""Commands `llrnn rare-words …`, with the interface of fairseq_llrnn/cli/main.py."""
