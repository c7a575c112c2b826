"""What the system brings for fairseq."""
