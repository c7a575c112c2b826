"""Data sets that the tasks give to training.

    binarized_bitext.py   the bitext of fairseq-preprocess, to align its words
    evidence_data.py      copied words read as unknown ones, targets with slots as tokens, what finds no room
    invented_evidence.py  invented unknown words on both sides
    unknown_words.py      how many words are <unk>
    zero_mass.py          targets that the background forbids
"""
