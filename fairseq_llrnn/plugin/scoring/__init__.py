"""Log-probabilities of sentences and texts, and why each word has its own.

    sentences.py  whole sentences, under any model
    text.py       bits of a text
    explainer.py  explanations from a checkpoint
"""
