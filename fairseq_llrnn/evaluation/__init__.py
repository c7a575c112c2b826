"""How well a model predicts a text: bits, and seen and unseen words.

scoring_model.py   scores, surprisals and minimal pairs of any model that scores lines
line_scorer.py     scores of lines in batches
prior_scorer.py    the background of a prior as a language model
texts.py           bits per word and character, batches of lines
tally.py           the figures of `llrnn eval-lm`
training_words.py  the words of a training text
"""
