"""Eight systems of the thesis, each in its folder, as plug-ins of fairseq_llrnn.

    output_trees          trees of word classes as output layers
    markov_field          Markov random fields of words and tags
    discourse             sentence encoders that learn from the order of sentences
    translators           the first neural translators, with a softmax or a log-linear output
    variable_computation  recurrent cells that choose how much of their state they compute
    mogrifier             the Mogrifier cell
    rare_words            annotation of rare words in a bitext
    dynamic_evaluation    gradient steps on the text that is scored

The entry points in pyproject.toml declare them. fairseq_llrnn imports none of them by name.
"""
