"""Log-probabilities of sentences and texts, and their explanations.

    sentences.py  whole sentences, under any model
    text_bits.py  bits of a text
    explainer.py  explanations from a checkpoint
    eval_lm_words.py  loss of seen and unseen words in eval-lm
    exporting.py  a trained model as one folder
    trained_model.py  the object of fairseq_llrnn.load
"""
