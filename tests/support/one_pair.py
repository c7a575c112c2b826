"""A data set of one pair of sentences, and a prior that knows terms, to see what training invents."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from few_words import OUTPUT, PRIOR, RULES, TARGET_WORDS
from torch.utils.data import Dataset

from fairseq_llrnn.evidence.evidence_table import slot_features
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.invented_terms import InventedGroups, InventedTerms
from fairseq_llrnn.systems.terms.plugin.marked_pairs import InventedMarks

TERM_RULES = replace(RULES, kinds=("terms", *RULES.kinds))
EPOCHS = 40  # that a test draws terms in


class OnePair(Dataset[Any]):
    def __init__(self, source: list[int], target: str) -> None:
        words = [TARGET_WORDS.index(word) for word in target.split()]
        self.pair = {"id": 0, "source": torch.tensor([*source, 2]), "target": torch.tensor([*words, 2])}

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.pair

    def __len__(self) -> int:
        return 1


def make_prior() -> Prior:
    slotted = OUTPUT.with_names(slot_features(TERM_RULES))
    return replace(
        PRIOR, output=slotted, input=slotted, parts=(EvidencePart(TERM_RULES),),
        log_weights=np.full(len(TARGET_WORDS), -10.0),
    )  # fmt: skip


def inventing(target: str, prior: Prior, forms: WordForms) -> InventedMarks:
    """The pair of a source of three words and a target, in which nearly every epoch asks for terms."""
    pair = OnePair([4, 5, 8], target)
    groups = InventedGroups(prior, forms, 1, lambda number: pair[number]["target"].numpy(), seed=1)
    return InventedMarks(pair, InventedTerms(prior, groups, 0.999, seed=1))
