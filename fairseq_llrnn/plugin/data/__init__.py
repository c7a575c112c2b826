"""Data sets that the tasks give to training.

    binarized_bitext.py   the bitext of fairseq-preprocess, to align its words
    evidence_data.py      copied words read as unknown ones, targets with slots as tokens, what finds no room
    invented_evidence.py  invented unknown words on both sides
    invented_terms.py     lemmas and phrases of the target, required as terms
    invented_groups.py    which these are, with their forms, and which phrases of the targets are among them
    term_columns.py       tokenisers that leave the terms behind a line as they are
    rare_word_aliases.py  rare words read and written as unknown ones
    zero_mass.py          targets that the background forbids
"""
