"""The command `llrnn dynamic-evaluation`, with the interface of fairseq_llrnn/cli/main.py."""
