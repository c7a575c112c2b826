"""The evidence of source words if both sides are in pieces (features/subwords.py).

Evidence is found in words and offered as words. A source word is the string of its pieces, at all of their positions.
The string that it offers is one token of the target. This is the dictionary's token if a single piece spells it,
otherwise a new token after the dictionary. The new token is written as a whole word (`▁4071`, in subword-nmt `4071`),
so that detokenisation restores it. Over pieces no word is unknown, so the *known words* are those of the source's
training text.

Sizes: L source tokens of a sentence. Source ids beyond the dictionary are pieces outside it: characters that its
training text lacked. A network reads them as `<unk>`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairseq_llrnn.evidence.evidence_table import EvidenceTable, Offer
from fairseq_llrnn.features.subwords import Convention


class PieceTable(EvidenceTable):
    """Offers by source word, a run of pieces. A slot that no piece spells is `unknown`: it has no input row in
    a network.
    """

    convention: Convention

    def source_index(self, word: str) -> int:
        """Return the id of a piece. A new piece gets one, since it may be part of evidence."""
        return self.source.index(word)

    def alias_of(self, index: int) -> None:
        """Return None: no piece is read as unknown."""
        return None

    def offers(self, index: int) -> tuple[Offer, ...]:
        """Return the offers of a word of a single piece."""
        return self._offers_of_word((index,))

    def offers_at(self, source: np.ndarray) -> np.ndarray:
        """Return whether a word with offers begins at each token of the sentences (…, L): bool, the same shape."""
        mask = np.zeros(source.shape, dtype=bool)
        for sentence, row in zip(np.atleast_2d(source), np.atleast_2d(mask), strict=True):
            row[[begin for begin, _, _ in self._offering(sentence)]] = True
        return mask

    def offered(self, sources: np.ndarray) -> Iterator[tuple[int, list[int], tuple[Offer, ...]]]:
        for number, sentence in enumerate(sources):
            for begin, end, offers in self._offering(sentence):
                yield number, list(range(begin, end)), offers

    def _offering(self, source: np.ndarray) -> Iterator[tuple[int, int, tuple[Offer, ...]]]:
        """Yield the words of a sentence (L,) with offers: first position, end, offers."""
        tokens = source.tolist()
        for begin, end in self.source_words.spans(source):
            offers = self._offers_of_word(tuple(tokens[begin:end]))
            if offers:
                yield begin, end, offers

    def _offers_of_word(self, tokens: tuple[int, ...]) -> tuple[Offer, ...]:
        if tokens not in self._offers:
            word = self.source_words.word(np.array(tokens))
            evidence = None if word is None else self.rules.find(word, self.source_vocabulary)
            self._offers[tokens] = self._offered_by(evidence)
        return self._offers[tokens]

    def token_string(self, string: str) -> str:
        return " ".join(map(self.convention.whole, string.split()))

    def unknown_features(self, string: str) -> dict[str, float]:
        place = self.convention.position(self.token_string(string))
        return super().unknown_features(string) | ({place: 1.0} if place in self._feature else {})
