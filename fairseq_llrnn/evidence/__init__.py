"""Evidence: strings of a source sentence that its translation may have to contain, each a *slot* of that sentence.

    rules.py            what counts as evidence, and as which target words; kept in the prior
    table.py            where words stand; ids and features of strings that no dictionary has; groups
    piece_table.py      the same over pieces
    slots.py            the slots of a batch, and their rows; targets in which slots stand for words
    counted_slots.py    groups of slots, how often each is to be said, and hypotheses that know what they have said
    group_slots.py      the groups of a batch, and their slots beside evidence
    translation_slots.py  slots of translations of source words; b(C; x) with all slots
"""
