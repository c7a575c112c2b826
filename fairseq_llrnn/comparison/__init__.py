"""`llrnn compare`: train n-grams, softmax models and ours on the same text, and compare their bits per character.

    settings.py       the choices of a comparison, and their checks
    texts.py          the three texts, from a treebank folder or files
    inputs.py         what a model is made from, apart from the texts
    models.py         the models: units, priors and training options
    pieces.py         subword pieces (BPE)
    jobs.py           train and score one model, with its result in a file
    processes.py      run jobs in processes, with a progress bar
    mixtures.py       interpolate a model with n-grams, token by token
    bootstrap.py      confidence intervals over sentences
    rows.py           the rows of the table, from the results of jobs
    tables.py         the rows as text, Markdown, TSV and LaTeX, and a paragraph
    picture.py        the rows as SVG
    results.py        all files of a comparison
    comparing.py      all of it in order
"""
