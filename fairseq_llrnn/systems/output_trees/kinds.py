"""Names and numbers that options of trees have; importing this imports nothing."""

DEPTH = 3  # where neither arity nor depth is given: that of the thesis' trees (Jernite 2018, §3.5)
CLUSTERS, HUFFMAN, RANDOM, LEARNED = "clusters", "huffman", "random", "learned"
KINDS = (CLUSTERS, HUFFMAN, RANDOM, LEARNED)
REASSIGN = 50  # times an epoch, as in the thesis
ROWS = ("free", "composed")  # weights of a node that is no leaf
