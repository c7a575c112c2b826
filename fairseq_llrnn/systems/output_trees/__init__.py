"""A word is found by choices along a tree over the signatures (README.md): `--output-tree`, `OutputTree`.

    output_tree.py         which tree a head takes, from options, files and checkpoints; one that is learned
    tree_layer.py          tables, and rows of internal nodes: the head's normaliser
    tree_log_linear.py     the output over a tree of signatures (tree_normalisation.py: what the head asks of it)
    tree_masses.py         masses of nodes
    tree_scores.py         scores of visits to nodes, sums over their children, what is counted of them
    tree_visits.py         … which visits
    tree_search.py         the most probable classes
    tree_words.py          the words below nodes, and as a picture
    show.py, explain.py    in `llrnn show` and `llrnn explain`

Trees over classes, which are numbers here:

    tree.py                parents, children, depths, paths, leaves below a node; in a file, too
    builders.py            trees that are built at once
    learner.py             the statistics of a layer, and trees that follow from them
    reassignment.py        all classes assigned anew, in a tree of a given depth or of any
"""

DEPTH = 3  # where neither arity nor depth is given: that of the thesis' trees (Jernite 2018, §3.5)
CLUSTERS, HUFFMAN, RANDOM, LEARNED = "clusters", "huffman", "random", "learned"
KINDS = (CLUSTERS, HUFFMAN, RANDOM, LEARNED)
REASSIGN = 50  # times an epoch, as in the thesis
ROWS = ("free", "composed")  # weights of a node that is no leaf
