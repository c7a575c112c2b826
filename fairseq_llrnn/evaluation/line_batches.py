"""Lines of a text in batches, in the order in which they come, for models that score or label them."""

from collections.abc import Iterable, Iterator

Line = tuple[int, list[str]]  # its number, from 1, and its words


def line_batches(lines: Iterable[str], longest: float, most: int, max_tokens: int) -> Iterator[list[Line]]:
    """Lines that are read together; one of more than `longest` words is alone.

    Args:
        most: lines of a batch. max_tokens: tokens of a batch, with padding and the ends of lines.
    """
    batch = list[Line]()
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if len(words) > longest:
            if batch:
                yield batch
            batch = []
            yield [(number, words)]
            continue
        width = 1 + max(len(words), *(len(others) for _, others in batch), 0)
        if batch and (len(batch) == most or width * (len(batch) + 1) > max_tokens):
            yield batch
            batch = []
        batch.append((number, words))
    if batch:
        yield batch
