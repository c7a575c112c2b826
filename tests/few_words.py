"""A handful of words, a prior's features over them, and backgrounds: static, lexical, by the last word."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from dynamic_prior import AfterLastWord
from torch import Tensor

from fairseq_llrnn.core.backgrounds.contract import Background
from fairseq_llrnn.core.backgrounds.lexical import LexicalBackground
from fairseq_llrnn.core.backgrounds.static import StaticBackground
from fairseq_llrnn.core.evidence.rules import EvidenceRules
from fairseq_llrnn.core.evidence.table import EvidenceTable
from fairseq_llrnn.core.features import FeatureTable
from fairseq_llrnn.core.lexical_table import LexicalTable
from fairseq_llrnn.core.signatures import group_equal_rows

INF = math.inf
PAD, EOS, UNK = 1, 2, 3
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
SOURCE_WORDS = (*SPECIALS, "two", "12", "1,000", "Ann", "dog", "7")
TARGET_WORDS = (*SPECIALS, "deux", "12", "99", "7", "000", "chien", "chat", "Ann", "Léa", "interdit")
RULES = EvidenceRules(("mapped", "numbers", "names", "copies"), {"1,000": ("1", "000"), "two": ("deux",)}, {}, 0.25)
KINDS_OF_FEATURES = ("NOTTOP", *RULES.feature_names)
SENTENCES = (
    "two dog 12 Ann </s>",  # all known
    "1,000 Zoé Bob dog Zoé </s>",  # two unknown names, one of them twice; two words for one token
    "dog </s>",  # no evidence
    "12 7 99 </s>",  # a whole class leaves but for what is forbidden; 99 is no word of the source, but of the target
    "</s>",
)


def class_rows() -> list[dict[str, float]]:
    rows: list[dict[str, float]] = [{f"SPECIAL:{symbol}": 1.0} for symbol in SPECIALS]
    kinds = ["N", "Num", "Num", "Num", "Num", "N", "N", "Name", "Name", "Num"]
    return [*rows, *({f"POS:{kind}": 1.0, "NOTTOP": 1.0} for kind in kinds)]


@dataclass
class TinyPrior:
    """What EvidenceTable asks of a prior."""

    symbols: tuple[str, ...] = TARGET_WORDS
    source_symbols: tuple[str, ...] = SOURCE_WORDS
    evidence: EvidenceRules = RULES
    settings: dict[str, bool] = field(default_factory=dict)

    @property
    def output(self):  # type: ignore[no-untyped-def]
        signatures = group_equal_rows(FeatureTable.from_rows(class_rows()))
        names = (*signatures.features.names, *(n for n in KINDS_OF_FEATURES if n not in signatures.features.names))
        return replace(signatures, features=replace(signatures.features, names=names))


PRIOR = TinyPrior()
CLASS_OF = torch.from_numpy(PRIOR.output.class_of.copy())
NUM_CLASSES = PRIOR.output.num_classes
FORBIDDEN = [0, 1, TARGET_WORDS.index("interdit")]


def log_weights(seed: int = 0) -> Tensor:
    weights = torch.randn(len(TARGET_WORDS), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weights[FORBIDDEN] = -INF
    return weights.log_softmax(0)


def base(kind: str, seed: int = 0) -> Background:
    if kind == "static":
        return StaticBackground(CLASS_OF, NUM_CLASSES, log_weights(seed))
    if kind == "dynamic":
        table = torch.randn(14, 14, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        table[:, FORBIDDEN] = -INF
        return AfterLastWord(CLASS_OF, NUM_CLASSES, table, EOS)
    random = np.random.default_rng(seed)
    words = [i for i in range(4, 14) if i not in FORBIDDEN]
    sources = np.repeat(np.arange(4, 10), len(words))
    table = LexicalTable.from_pairs(sources, np.tile(words, 6), random.random(len(sources)), len(SOURCE_WORDS), 3)
    speaks = torch.tensor([s not in ("<s>", "<pad>", "</s>") for s in SOURCE_WORDS])
    is_word = torch.tensor([s not in SPECIALS for s in TARGET_WORDS])
    return LexicalBackground(CLASS_OF, NUM_CLASSES, log_weights(seed), table, is_word, speaks, 0.3, True).double()


def encode(table: EvidenceTable, lines: tuple[str, ...] = SENTENCES) -> Tensor:
    ids = [[3 if (i := table.source_index(word)) is None else i for word in line.split()] for line in lines]
    longest = max(map(len, ids))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in ids])
