"""Expert features φ_e(K; x) (Dymetman & Xiao 2016, §6): a user's class scores the next word in each context.

expert.py    Expert, Firing: the interface of a user's class
panel.py     experts opened with a prior, queried in contexts, and checks of their answers
features.py  the weights a_e(K), and rows of the output layer with the experts' values
loading.py   path/to/file.py:ClassName -> the class, opened with the words of a prior
user_code.py the option --expert of every command that loads a model
"""
