"""`llrnn prior`: build the prior, a folder that training needs, from treebanks, lexicons and counts."""
