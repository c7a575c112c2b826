"""A word is found by choices along a tree over the signatures (README.md): `--output-tree`, `OutputTree`.

    output_tree.py         which tree a head takes, from options, files and checkpoints
    tree_layer.py          tables, and rows of internal nodes: the head's normaliser
    learned_tree.py        a tree that is learned beside its rows (tree_statistics.py: what it counts)
    tree_log_linear.py     the output over a tree of signatures (tree_normalisation.py: what the head asks of it)
    tree_masses.py         masses of nodes
    tree_scores.py         scores of visits to nodes, and sums over their children (tree_visits.py: which visits)
    tree_all_classes.py    log p of all classes; tree_single.py: of few, without a gradient
    tree_search.py         the most probable classes
    tree_choices.py        what an explanation says of it
    tree_words.py          the words below nodes; tree_picture.py: as a picture

Trees over classes, which are numbers here:

    tree.py                parents, children, depths, paths, leaves below a node (tree_file.py: in a file)
    options.py             what is said of a tree before there is one (kinds.py: its names; limits.py: what makes sense)
    clusters.py            two levels, by mass
    huffman.py             the least mean depth
    random_tree.py         balanced, in random order (even.py: a row of classes, cut into equal parts)
    clustering.py          balanced, by vectors of the classes
    learner.py             the statistics of a layer, and trees that follow from them (schedule.py: when)
    node_objective.py      how well a node tells classes apart, and what improves that
    matching.py            items take places, the best pair first (preferences.py: which child a class is to have)
    fixed_depth.py         all classes assigned anew, in a tree of a given depth; free_depth.py: of any depth
"""
