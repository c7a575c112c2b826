"""fairseq made safe and suitable: checkpoints, expressions, dictionaries, loading."""
