"""Sentences of a validation or test text in the sources of a prior, which would make the evaluation too optimistic."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

LEAST = 10  # least number of sentences of a text
SEEN = "the perplexity of that text will be too low; build the prior from the training text alone"


@dataclass
class HeldOut:
    """Sentences of validation and test texts, and the sources that contain them.

    A source of a prior, such as a treebank, adds the sentences that it contains to `found`.
    """

    texts: Mapping[str, frozenset[str]] = field(default_factory=dict)  # name -> sentences, words between blanks
    found: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # name of a source -> sentences

    @property
    def sentences(self) -> frozenset[str]:
        """The sentences of all texts."""
        return frozenset(chain(*self.texts.values()))

    def remarks(self) -> Counter[str]:
        """Return a remark for each source that contains most sentences of a text, with their number."""
        remarks: Counter[str] = Counter()
        for source, found in self.found.items():
            for text, sentences in self.texts.items():
                num_shared = len(sentences & found)
                if len(sentences) >= LEAST and 2 * num_shared > len(sentences):
                    remarks[f"of {len(sentences):,} sentences of {text} are in {source}: {SEEN}"] = num_shared
        return remarks
