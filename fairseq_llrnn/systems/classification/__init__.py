"""Texts with one or several labels, and the probability of each (docs/guides/classification.md).

    plugin/            --task llrnn_classification, --arch llrnn_bag and llrnn_classifier
    commands/          `llrnn classify`
    label_hits.py      how many labels are named right
"""
