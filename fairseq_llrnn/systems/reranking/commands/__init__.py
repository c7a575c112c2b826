"""Commands `llrnn report` and `llrnn rescore`, with the interface of fairseq_llrnn/cli/main.py."""
