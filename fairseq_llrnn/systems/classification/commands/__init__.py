"""The command `llrnn classify`, with the interface of fairseq_llrnn/cli/main.py."""
