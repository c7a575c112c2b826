"""Trees over classes: which choices lead from the root to a class. No layer, no words.

    tree.py            the tree: parents, children, depths, paths, leaves below a node
    tree_file.py       a tree in a file
    limits.py          arity, depth and masses that make sense
    even.py            a row of classes, cut into equal parts
    clusters.py        two levels, by mass
    huffman.py         the least mean depth
    random_tree.py     balanced, in random order
    clustering.py      balanced, by vectors of the classes
    matching.py        items take places, the best pair first
    node_objective.py  how well a node tells classes apart, and what improves that
    preferences.py     which child a class is to have
    fixed_depth.py     all classes assigned anew, in a tree of a given depth
    free_depth.py      … of any depth
    learner.py         the statistics of a layer, and trees that follow from them
    schedule.py        when
    options.py         what is said of a tree before there is one (kinds.py: its names)
"""
