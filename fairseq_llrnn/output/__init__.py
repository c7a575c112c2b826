"""The log-linear output layer: exact over signatures, or with a sample of them."""
