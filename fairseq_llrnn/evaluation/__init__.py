"""How well a model predicts a text: bits, and seen and unseen words.

scoring_model.py   scores, surprisals and minimal pairs of any model that scores lines
texts.py           bits per word and character, batches of lines
training_words.py  the words of a training text
"""
