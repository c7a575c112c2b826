"""All tokenisations of a word by a tokenizer's tokens: the paths of a lattice.

Each node but the first one is a place between two bytes of the word. Each arc is a token that spells the bytes between
its nodes. A word that begins a text has one node more at the beginning, where ▁ spells nothing.

Size: n bytes of a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairseq_llrnn.huggingface.token_texts import TokenTexts

ByByte = dict[int, list[tuple[bytes, int]]]


class Lattice:
    """The tokenisations of a word. `number` counts them without making them."""

    def __init__(self, arcs: Sequence[Sequence[tuple[int, int]]]) -> None:
        """arcs: those that leave each node but the last one: tokens, and the later nodes where they end."""
        self._arcs = arcs
        self._counts = [0] * len(arcs) + [1]  # of the paths from each node
        for node in reversed(range(len(arcs))):
            self._counts[node] = sum(self._counts[end] for _, end in arcs[node])
        self.number = self._counts[0]

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        waiting: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        while waiting:
            node, path = waiting.pop()
            if node == len(self._arcs):
                yield path
            else:
                waiting += [(end, (*path, token)) for token, end in self._arcs[node] if self._counts[end]]


class Lattices:
    """Makes the lattices of words."""

    def __init__(self, texts: TokenTexts) -> None:
        self.texts = texts
        self._first, self._later = _by_first_byte(texts.first), _by_first_byte(texts.later)
        self._empty = [token for token, text in enumerate(texts.first) if text == b""]

    def lattice(self, tokens: Sequence[int], is_first: bool) -> Lattice:
        """Return the tokenisations that spell what these tokens spell. If one is special (<unk>), return these alone.

        Args:
            is_first: whether the word begins the text.
        """
        word = self.texts.text(tokens, is_first)
        if word is None:
            return Lattice([[(token, at + 1)] for at, token in enumerate(tokens)])
        arcs = [[(token, 1) for token in self._empty] + _arcs(self._first, word, 0, 1)] if is_first else []
        return Lattice([*arcs, *(_arcs(self._later, word, at, len(arcs)) for at in range(len(word)))])


def _by_first_byte(texts: Sequence[bytes | None]) -> ByByte:
    found: ByByte = {}
    for token, text in enumerate(texts):
        if text:
            found.setdefault(text[0], []).append((text, token))
    return found


def _arcs(texts: ByByte, word: bytes, at: int, nodes_before: int) -> list[tuple[int, int]]:
    """The tokens that spell the bytes from `at` on, and the nodes where they end."""
    found = texts.get(word[at], ()) if word else ()
    return [(token, nodes_before + at + len(text)) for text, token in found if word.startswith(text, at)]
