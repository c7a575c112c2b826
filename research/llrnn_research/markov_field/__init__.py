"""A language model and a tagger that are normalised once for a whole text: chain Markov random fields.

After Jernite (2018), *Learning Representations of Text through Language and Discourse Modeling*, chapter 4. In the
order of the data flow:

    vocabulary.py         the tokens of a text, as words or as signatures of a prior
    moments.py            counts of a text
    potentials.py         θ: explicit, three forms of low rank, rows of features
    star.py               the bound on log Z: belief propagation on a star, in blocks
    objective.py          the bound on a text, and its gradients
    lbfgs.py, learning.py training by the bound: Algorithm 4.2, and joint ascent
    pseudo_likelihood.py  p(tᵢ | neighbours), and training by it
    training.py           a field of words from files, with checkpoints
    model.py, folder.py   a trained field, and its folder
    background.py, part.py  a field as the background of a log-linear model
    tagger.py, tagger_training.py  the joint field of words and tags
    commands/             `llrnn mrf`
"""
