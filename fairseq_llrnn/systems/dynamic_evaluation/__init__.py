"""Language models that go on learning from the text that they score (Krause et al. 2018; README.md).

    updates.py     gradient steps with decay towards the weights of the checkpoint, statistics of gradients
    evaluation.py  a text, scored group by group with a step after each; gradients of training data
    commands/      `llrnn dynamic-evaluation`
"""
