"""`llrnn mrf …`: one module each (fairseq_llrnn/cli/main.py says what it offers)."""
