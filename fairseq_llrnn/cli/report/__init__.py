"""`llrnn report`: systems' translations of one test beside each other, on the terminal and as a page to read."""
