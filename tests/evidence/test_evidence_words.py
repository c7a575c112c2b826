"""Tokens, classes and columns of slots: what is no slot is <unk>, and every string has one class and one column."""

import math

import torch
from few_words import CLASS_OF, NUM_CLASSES, PAD, SENTENCES, TARGET_WORDS, UNK, encode, new_table

from fairseq_llrnn.evidence.slot_words import SlotWords
from fairseq_llrnn.evidence.slots import slots_of
from fairseq_llrnn.evidence.table import EvidenceTable

V, B = len(TARGET_WORDS), len(SENTENCES)
EACH = torch.arange(B)


def make() -> tuple[SlotWords, EvidenceTable]:
    table = new_table()
    return SlotWords(slots_of(table, encode(table, SENTENCES)), CLASS_OF, NUM_CLASSES, PAD, UNK), table


def test_an_unknown_slot_and_a_string_without_a_slot_are_read_as_unk() -> None:
    words, table = make()
    zoe, elsewhere = table.target.index("Zoé"), table.target.index("Nowhere")
    ann = TARGET_WORDS.index("Ann")
    tokens = torch.tensor([[zoe, ann, elsewhere]]).expand(B, -1)
    sentence = EACH.unsqueeze(1).expand_as(tokens)
    read = words.readable(sentence, tokens)
    assert read[1].tolist() == [UNK, ann, UNK] and read[0].tolist() == [UNK, ann, UNK]
    assert words.known(tokens)[1].tolist() == [UNK, ann, UNK]
    assert words.classes(sentence, tokens)[0, 2] == CLASS_OF[UNK]  # scored as <unk>
    assert words.column_of(sentence, tokens)[1].tolist()[1:] == [ann, UNK]
    assert words.column_of(sentence, tokens)[1, 0] >= V, "its own, where a slot offers it"


def test_a_string_has_one_class_and_one_column() -> None:
    words, _ = make()
    columns = words.columns(EACH)  # shape: (B, V + J)
    sentence = EACH.unsqueeze(1).expand_as(columns)
    classes, places = words.classes(sentence, columns), words.column_of(sentence, columns)
    for b in range(B):
        offered = [token for token in words.slots.words[b].tolist() if token >= 0]
        assert words.strings(EACH)[b, : len(offered)].tolist() == offered
        for column, token in enumerate(columns[b].tolist()):
            is_slot = token in offered
            assert int(classes[b, column]) == (NUM_CLASSES + offered.index(token) if is_slot else int(CLASS_OF[token]))
            assert int(places[b, column]) == (token if token < V else V + offered.index(token))


def test_a_slot_inside_the_vocabulary_has_its_words_column() -> None:
    words, _ = make()
    of_slots = -1.0 - torch.arange(words.left.size(1)).expand(B, -1)
    found = words.in_columns(EACH, torch.zeros(B, V), of_slots)
    for b in range(B):
        expected = [0.0] * V + [-math.inf] * words.left.size(1)
        for j, token in enumerate(words.slots.words[b].tolist()):
            expected[token if 0 <= token < V else V + j] = -1.0 - j
        assert found[b].tolist() == expected


def test_the_mass_of_a_class_is_written_once() -> None:
    words, _ = make()
    for b in range(B):
        leave = [token for token in words.slots.words[b].tolist() if 0 <= token < V]
        written = words.written[b][words.writes[b]].tolist()
        assert sorted(written) == sorted({int(CLASS_OF[token]) for token in leave})
        assert words.leaves[b][words.inside[b]].tolist() == leave
    assert bool((words.inside & ~words.writes).any()), "two words of one class leave it"
