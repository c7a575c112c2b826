"""Log-probabilities of sentences and texts, and why each word has its own."""
