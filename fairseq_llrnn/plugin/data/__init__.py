"""Data sets of the tasks, for training.

    evidence_data.py      slots of a batch, targets with them as tokens, copied words read as unknown, warnings
    invented_evidence.py  invented unknown words on both sides
    unknown_words.py      count <unk>
    zero_mass.py          find targets that the background forbids
"""
