"""Dynamic evaluation: language models that continue to learn from the text that they score (Krause et al. 2018).

    updates.py     gradient steps with decay towards the weights of the checkpoint, statistics of gradients
    evaluation.py  scores of a text, group by group with a step after each, and gradients of training data
    commands/      `llrnn dynamic-evaluation`
"""
