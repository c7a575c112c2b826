"""The parts for fairseq. Importing this module announces the task and the models.

    task.py              llrnn_classification
    labelled_texts.py    its data sets
    llrnn_classifier.py  a bag of words, and a recurrent model
    label_decoder.py     the parts that both models share
    prediction.py        labels of texts, by a checkpoint
"""


from fairseq_llrnn.plugin.kinds import KINDS, Kind
from fairseq_llrnn.plugin.names import announce

announce(f"{__name__}.task", f"{__name__}.llrnn_classifier")
KINDS["llrnn_classification"] = Kind(
    "llrnn_bag",
    (),
    ("source_lang", "target_lang"),
    dict.fromkeys(("eval-lm", "generate", "interactive"), "llrnn classify"),
    "llrnn classify --data {data} --path {path} < TEXTS",
    of_setting="labels",
)
