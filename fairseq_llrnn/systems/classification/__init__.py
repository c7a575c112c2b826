"""Texts with one or several labels, and the probability of each (docs/guides/classification.md).

    plugin/            --task llrnn_classification, --arch llrnn_bag and llrnn_classifier
    commands/          `llrnn classify`
    text_vectors.py    a vector for a text
    labelled_lines.py  texts with labels in one file
    label_hits.py      how many labels are named right
"""
