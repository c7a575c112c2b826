"""Output trees: predict a word by a sequence of choices in a tree over the signatures (README.md, `--output-tree`).

    output_tree.py         the tree of a head, from options, a file or a checkpoint, fixed or learned
    tree_layer.py          the tree of an output layer, and the tree in a checkpoint
    tree_tables.py         lookup tables of a tree, and rows of its internal nodes
    tree_log_linear.py     the log-linear output over a tree
    tree_normalisation.py  the tree as the normaliser of a head
    tree_masses.py         masses of nodes
    tree_visits.py         visits of nodes along paths, in groups
    tree_scores.py         scores of visits, sums over children, statistics for learning
    tree_search.py         search for the most probable classes
    tree_words.py          the words below nodes, as lists and as a picture
    show.py, explain.py    options of `llrnn show` and `llrnn explain`

Trees over classes, which are numbers here:

    tree.py                parents, children, depths, paths, leaves below a node, and tree files
    builders.py            trees built in one pass
    learner.py             statistics of a layer, from which a tree is learned
    reassignment.py        reassignment of all classes, in a tree of a given depth or of any depth
"""

DEPTH = 3  # default depth if no arity is given, from Jernite (2018, §3.5)
CLUSTERS, HUFFMAN, RANDOM, LEARNED = "clusters", "huffman", "random", "learned"
KINDS = (CLUSTERS, HUFFMAN, RANDOM, LEARNED)
REASSIGN = 50  # times per epoch, as in the thesis
ROWS = ("free", "composed")  # weights of internal nodes
