"""Evidence: strings of a source sentence that its translation may have to contain, each a *slot* of that sentence.

    rules.py            what counts as evidence, and as which target words; kept in the prior
    mapping_file.py     a user's table: source word, target words
    table.py            ids of strings that the dictionaries lack
    piece_table.py      the same over pieces
    word_spans.py       where words stand in sentences of numbers, also where a word is several pieces
    slots.py            the slots of a batch, and their rows
    merged_targets.py   target sentences in which slots stand for the words that spell them
    background.py       their weight: b(C; x) = b₁(C; x) + ε/J
    counted_slots.py    groups of slots, how often each is to be said, and hypotheses that know what they have said
    groups.py           strings of which a translation has to have one, and marks that ask for them
    group_slots.py      the groups of a batch, and their slots beside evidence
    translation_slots.py  slots of translations of source words
    features.py         the features of a string outside the vocabulary
    synthetic_words.py  invented unknown words, for training
    overflow.py         evidence that finds no room in the slots
"""
