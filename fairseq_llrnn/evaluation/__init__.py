"""How well a model predicts a text: bits, and seen and unseen words.

    texts.py           bits per word and character; lines that are read together
    training_words.py  the words of a training text
"""
