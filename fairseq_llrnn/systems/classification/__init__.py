"""Classify texts with one or several labels, with a probability for each (docs/guides/classification.md).

    plugin/            --task llrnn_classification, --arch llrnn_bag and llrnn_classifier
    commands/          `llrnn classify`
    label_hits.py      precision and recall of predicted labels
"""
