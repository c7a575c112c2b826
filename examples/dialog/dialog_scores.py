"""BLEU and slot errors as defined in RNNLG (its loader/GentScorer.py and generator/net.py).

**Slot errors.** A sentence has a token for every value in it, and each slot is counted. A *missing* slot is in the act
more often than in the sentence, an *added* one the other way round. For slots with the values yes, no, none or
dontcare, keywords are counted: `child`, `kid` … for kidsallowed. Other slots with such values, and the slot `type`, are
not counted, nor are acts ?select and suggest. ERR = (missing + added) / slots in the acts.

**BLEU** is corpus BLEU-4. Each of an act's hypotheses (the best five) is compared with all its references: the
sentences of all acts of the test set that are alike, with this act's values.

Both are counted over all hypotheses of a system for an act, as often as the test set has the act.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dialog_acts import Act, is_special
from dialog_words import MARK

UNCOUNTED_ACTS = ("?select", "suggest")
KEYWORDS = {  # of slots that are said with words of their own
    "kidsallowed": ("child", "kid", "kids", "children"),
    "dogsallowed": ("dog", "dogs", "puppy"),
    "hasinternet": ("internet", "wifi"),
    "acceptscreditcards": ("card", "cards"),
}
TINY = 1e-7  # so that nothing is divided by zero


@dataclass(frozen=True)
class SlotErrors:
    """Counts over sentences, which can be added."""

    slots: int = 0  # in the acts
    missing: int = 0
    added: int = 0
    of_texts: int = 0  # the errors of both kinds that are of values said in so many letters

    def __add__(self, other: SlotErrors) -> SlotErrors:
        return SlotErrors(
            self.slots + other.slots,
            self.missing + other.missing,
            self.added + other.added,
            self.of_texts + other.of_texts,
        )

    @property
    def errors(self) -> int:
        return self.missing + self.added

    def share(self, errors: int) -> float:
        """Return errors in per cent of the slots."""
        return 100.0 * errors / self.slots if self.slots else 0.0


def slot_errors(act: Act, marked: str) -> SlotErrors:
    """Count the errors of one sentence with tokens for its values (dialog_words.mark)."""
    if act.kind in UNCOUNTED_ACTS:
        return SlotErrors()
    words = marked.split()
    said = Counter(word[len(MARK) :].partition("_")[0] for word in words if word.startswith(MARK))
    texts = Counter(slot for slot, _ in act.texts)
    of_texts = _difference(texts, said)
    special = Counter(slot for slot, value in act.pairs if slot in KEYWORDS and is_special(value) and value != "?")
    keywords = Counter({slot: sum(map(words.count, known)) for slot, known in KEYWORDS.items()})
    of_words = _difference(special, keywords)
    slots = texts.total() + special.total()
    missing, added = (one + other for one, other in zip(of_texts, of_words, strict=True))
    return SlotErrors(slots, missing, added, sum(of_texts))


def _difference(wanted: Counter[str], said: Counter[str]) -> tuple[int, int]:
    return (wanted - said).total(), (said - wanted).total()


def bleu(answers: Sequence[tuple[Sequence[str], Sequence[str]]]) -> float:
    """Return corpus BLEU-4 between 0 and 1 of pairs of hypotheses and references, both tokenised."""
    right, total = [0] * 4, [0] * 4
    length = reference_length = 0
    for hypotheses, references in answers:
        of_references = [[_ngrams(reference.split(), n) for n in range(1, 5)] for reference in references]
        most = [_most(counts) for counts in zip(*of_references, strict=True)]
        lengths = [len(reference.split()) for reference in references]
        for hypothesis in hypotheses:
            words = hypothesis.split()
            for n in range(4):
                counts = _ngrams(words, n + 1)
                total[n] += counts.total()
                right[n] += (counts & most[n]).total()
            length += len(words)
            reference_length += min(lengths, key=lambda other: abs(other - len(words)))
    if length == 0:
        return 0.0
    brevity = 1.0 if length > reference_length else math.exp(1.0 - reference_length / length)
    precisions = [hits / (all_of_them + TINY) + TINY for hits, all_of_them in zip(right, total, strict=True)]
    return brevity * math.exp(math.fsum(map(math.log, precisions)) / 4)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))


def _most(counts: Sequence[Counter[tuple[str, ...]]]) -> Counter[tuple[str, ...]]:
    """Return the maximum count of each n-gram in a reference."""
    most: Counter[tuple[str, ...]] = Counter()
    for one in counts:
        most |= one
    return most
