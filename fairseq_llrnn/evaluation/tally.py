"""Loss of seen and unseen words, and bits per character, of a text of a data folder: the lines of `llrnn eval-lm`.

Bits per character can be compared between models of words and of pieces, like those of `llrnn score`. A word counts
with the blank or the line end after it. They are not defined if words are `<unk>`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from fairseq_llrnn.features.dictionary import EOS, UNK
from fairseq_llrnn.features.subwords import Convention

SEEN, UNSEEN, END = "seen words", "unseen words", "ends of sentences"


class Tally:
    """Sums over the tokens of a test text.

    Attributes:
        tokens, bits: by kind of word.
        characters: of words, blanks and line ends.
    """

    def __init__(self, symbols: Sequence[str], convention: Convention | None, seen: frozenset[str] | None) -> None:
        """symbols: of the dictionary. convention: of subword pieces. seen: the words of the training text (None:
        unknown, or pieces).
        """
        self.symbols, self.convention, self.seen = symbols, convention, seen
        self.end, self.unk = symbols.index(EOS), symbols.index(UNK)
        self.tokens, self.bits = Counter[str](), dict.fromkeys((SEEN, UNSEEN, END), 0.0)
        self.characters = self.unknown = 0

    def add(self, tokens: Sequence[int], log_probs: Sequence[float]) -> None:
        """Count the tokens of a block and their log p in nats. Impossible ones are left out, like in fairseq."""
        before = self.end
        for token, log_prob in zip(tokens, log_probs, strict=True):
            word, is_end = self.symbols[token], token == self.end
            if token == self.unk:
                self.unknown += 1
            elif is_end:
                self.characters += before == token  # an empty line
            else:
                self.characters += _width(word, self.convention)
            before = token
            if math.isfinite(log_prob):
                kind = END if is_end else SEEN if self.seen is None or word in self.seen else UNSEEN
                self.tokens[kind] += 1
                self.bits[kind] -= log_prob / math.log(2)

    def lines(self) -> Iterator[str]:
        """Yield the lines to print."""
        if self.seen is not None:
            yield "; ".join(
                f"{kind}: {count:,}, loss {self.bits[kind] / count:.4f}"
                for kind in (SEEN, UNSEEN, END)
                if (count := self.tokens[kind])
            )
        if self.unknown:
            yield f"Bits per character: not defined, because {self.unknown:,} words are <unk>; see `llrnn score --open`"
        elif self.characters:
            yield f"Bits per character: {sum(self.bits.values()) / self.characters:.4f}"


def _width(word: str, convention: Convention | None) -> int:
    """Count the characters of a word and the blank after it, or of a piece and the blank of its mark."""
    if convention is None:
        return len(word) + 1
    bare = len(convention.bare(word))
    return bare + (convention.is_marked(word) == convention.mark_begins)
