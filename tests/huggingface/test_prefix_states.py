"""States of hypotheses by what they have written: those of each prefix read again, however they are reordered."""

import torch
from torch import Tensor

from fairseq_llrnn.huggingface.prefix_states import PrefixStates


def counting() -> PrefixStates[Tensor]:
    """A state is all that was read, as a number with a digit per token; sentence i begins with i + 1."""
    sentences = torch.tensor([0, 0, 0, 1, 1, 1])
    return PrefixStates(lambda n: 1 + sentences[:n], lambda s, x: 10 * s + x, lambda s, rows: s[rows], unread=1)


def read_again(written: Tensor, sentence: Tensor) -> list[int]:
    rows = zip(sentence.tolist(), written.tolist(), strict=True)
    return [int("".join(map(str, [number + 1, *row[1:]]))) for number, row in rows]


def test_states_follow_hypotheses_that_are_reordered_repeated_and_dropped() -> None:
    states, sentence = counting(), torch.tensor([0, 0, 0, 1, 1, 1])
    generator = torch.Generator().manual_seed(3)
    written = torch.full((6, 1), 2)
    for step in range(12):
        assert states.states_after(written, sentence).tolist() == read_again(written, sentence), step
        parents = torch.cat([torch.randint(first, first + 3, (3,), generator=generator) for first in (0, 3)])
        written = torch.cat([written[parents], torch.randint(0, 4, (6, 1), generator=generator)], dim=1)
    assert states.full_reads == 1, "all others go on from the step before"


def test_a_prefix_that_was_not_there_is_read_from_its_beginning() -> None:
    states, sentence = counting(), torch.tensor([0, 0, 0, 1, 1, 1])
    states.states_after(torch.full((6, 2), 2), sentence)
    for other in (torch.full((6, 3), 3), torch.full((6, 1), 2), torch.full((6, 5), 1)):
        assert states.states_after(other, sentence).tolist() == read_again(other, sentence)
    assert states.full_reads == 4


def test_the_same_words_in_another_sentence_are_another_prefix() -> None:
    states = counting()
    states.states_after(
        torch.tensor([[2, 1], [2, 1], [2, 1], [2, 3], [2, 3], [2, 3]]), torch.tensor([0, 0, 0, 1, 1, 1])
    )
    written, sentence = torch.tensor([[2, 3, 0]] * 6), torch.tensor([0, 0, 0, 1, 1, 1])
    assert states.states_after(written, sentence).tolist() == [130, 130, 130, 230, 230, 230]
    assert states.full_reads == 2
