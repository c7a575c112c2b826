"""Expert features φ_e(K; x) (Dymetman & Xiao 2016, §6): what a user's own class says of the next word, per context.

expert.py    Expert, Firing: what a user writes
panel.py     experts opened with a prior, asked about a context, their answers checked
features.py  the weights a_e(K), and rows of the output layer that know the experts' values
loading.py   path/to/file.py:ClassName -> the class, opened with the words of a prior
user_code.py what every command is told that loads a model; explain.py: in `llrnn explain`
"""
