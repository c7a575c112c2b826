"""Masses and shares of classes that words have left, by summing over all words that stay."""

import pytest
import torch
from few_words import CLASS_OF, NUM_CLASSES, PAD, SENTENCES, TARGET_WORDS, UNK, base, encode, new_table

from fairseq_llrnn.backgrounds.base import class_log_sums
from fairseq_llrnn.evidence.residual_mass import Leaving
from fairseq_llrnn.evidence.slot_words import SlotWords
from fairseq_llrnn.evidence.slots import slots_of

V, B = len(TARGET_WORDS), len(SENTENCES)


@pytest.mark.parametrize("kind", ["static", "lexical", "dynamic", "automaton"])
def test_masses_gains_and_shares_are_sums_over_the_words_that_stay(kind: str) -> None:
    table = new_table()
    source = encode(table, SENTENCES)
    below = base(kind).given(source.masked_fill(source >= table.source.known, UNK))
    words = SlotWords(slots_of(table, source), CLASS_OF, NUM_CLASSES, PAD, UNK)
    leaving = Leaving(below, words)
    state, order = below.advance(below.start(B), torch.full((B,), 4)), torch.tensor([1, 3, 0, 1, 4])
    state = state[order]  # hypotheses of a search, whose sentences are `order`

    weights = below.log_weights(state).expand(B, -1)
    gone = torch.zeros(B, V, dtype=torch.bool)
    for row, sentence in enumerate(order.tolist()):
        gone[row, [token for token in words.slots.words[sentence].tolist() if 0 <= token < V]] = True
    stay = weights.masked_fill(gone, -torch.inf)
    all_, rest = (class_log_sums(w, CLASS_OF, NUM_CLASSES) for w in (weights, stay))
    left = words.left[order]
    inside = words.inside[order]

    before, after, own = leaving.masses(order, state)
    torch.testing.assert_close(before[inside], all_.gather(1, left)[inside])
    torch.testing.assert_close(after[inside], rest.gather(1, left)[inside])
    torch.testing.assert_close(own[inside], weights.gather(1, words.leaves[order])[inside])
    assert bool(own[~inside].isneginf().all())
    torch.testing.assert_close(leaving.log_mass(order, state), rest)

    classes = torch.arange(NUM_CLASSES).expand(B, -1)
    gain = torch.where(rest.isneginf(), 0.0, all_ - rest)
    torch.testing.assert_close(leaving.gain(order, state, classes), gain)
    shares = leaving.log_shares(below, order, state)
    torch.testing.assert_close(shares[~gone], torch.where(stay.isneginf(), stay, stay - rest[:, CLASS_OF])[~gone])
