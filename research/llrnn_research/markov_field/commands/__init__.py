"""Commands `llrnn mrf …`, one module each, with the interface of fairseq_llrnn/cli/main.py."""
