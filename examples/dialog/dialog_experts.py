"""An expert that tracks what was said: `--expert examples/dialog/dialog_experts.py:Coverage`.

A piece of evidence is a token of the act with its strings: a value, or the words about a slot (`#kid`, `#child`). Its
strings have the value −1 after one of them was said, and the end of the sentence has −1 until everything was said. The
network weights this at every step (Dymetman & Xiao 2016, §6): strongly where a value could be repeated, or where the
sentence could end.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.experts.expert import Expert, Firing


class Coverage(Expert):
    """The evidence that the target so far does not contain."""

    looks_at_prefix = True

    def open(self, prior: Prior) -> None:
        part = prior.find(EvidencePart)
        if part is None:
            raise OptionError("expected a prior with evidence, found one without; build it with --evidence")
        self.rules, self.known = part.rules, frozenset(prior.source_symbols)
        self.offers: dict[str, tuple[str, ...]] = {}  # source word -> the strings that it offers

    def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
        said = set(prefix)
        pieces = {piece for piece in map(self._offer, source) if piece}
        done = {piece for piece in pieces if said.intersection(piece)}
        values = {word: -1.0 for piece in done for word in piece}
        return Firing(exceptions=values | {EOS: -1.0 if done < pieces else 0.0})

    def _offer(self, word: str) -> tuple[str, ...]:
        if word not in self.offers:
            found = self.rules.find(word, self.known)
            self.offers[word] = () if found is None else found.words
        return self.offers[word]
