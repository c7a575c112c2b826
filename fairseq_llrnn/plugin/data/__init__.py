"""Data sets of the tasks, for training.

    evidence_data.py      copied words read as unknown, targets with slots as tokens, warnings about lost strings
    invented_evidence.py  invented unknown words on both sides
    unknown_words.py      count <unk>
    zero_mass.py          find targets that the background forbids
"""
