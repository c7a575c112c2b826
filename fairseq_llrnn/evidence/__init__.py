"""Evidence: strings of a source sentence that its translation may have to contain, each a *slot* of that sentence.

rules.py            which source tokens are evidence, and for which target words (stored in the prior)
evidence_table.py   positions of words, ids and features of strings outside the dictionaries, groups
piece_table.py      the same over pieces
slots.py            the slots of a batch, and their rows, targets with slots as tokens
counted_slots.py    groups of slots with quotas, and hypotheses that count their slots
group_slots.py      the groups of a batch, and their slots in addition to evidence
translation_slots.py  slots of translations of source words, and the background with all slots
"""
