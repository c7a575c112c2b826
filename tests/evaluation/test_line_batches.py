"""Lines in batches."""

import pytest

from fairseq_llrnn.evaluation.texts import line_batches


@pytest.mark.parametrize(
    ("longest", "most", "max_tokens", "expected"),
    [
        (9, 9, 99, [[1, 2, 3, 4, 5]]),
        (9, 2, 99, [[1, 2], [3, 4], [5]]),
        (9, 9, 6, [[1], [2, 3], [4], [5]]),  # the second and third are padded to 2 words, with their ends 6 tokens
        (3, 9, 99, [[1, 2, 3], [4], [5]]),
        (3, 9, 1, [[1], [2], [3], [4], [5]]),  # a batch has one line at least
    ],
)
def test_lines_come_in_their_order(longest: int, most: int, max_tokens: int, expected: list[list[int]]) -> None:
    lines = ["a b c", "a", " ", "a b c d", "a b"]
    found = list(line_batches(lines, longest, most, max_tokens))
    assert [[number for number, _ in batch] for batch in found] == expected
    assert [words for batch in found for _, words in batch] == [line.split() for line in lines]


def test_no_lines_make_no_batch() -> None:
    assert list(line_batches([], 9, 9, 99)) == []
