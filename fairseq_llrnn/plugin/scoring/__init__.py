"""Log-probabilities of sentences and texts, and why each word has its own.

    sentences.py  whole sentences, under any model
    text.py       bits of a text
    explainer.py  explanations from a checkpoint
    eval_lm_words.py  what eval-lm prints of seen and unseen words
    exporting.py  a trained model as one folder
    trained_model.py  the object of fairseq_llrnn.load
"""
