"""`llrnn prior`: treebanks, lexicons and counts -> the prior directory that training needs."""
