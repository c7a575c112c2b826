"""Trees over classes: which choices lead from the root to a class. No layer, no words.

    tree.py          the tree: parents, children, depths, paths, leaves below a node
    tree_file.py     a tree in a file
"""
