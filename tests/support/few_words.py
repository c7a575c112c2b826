"""A handful of words, a prior's features over them, and backgrounds: static, lexical, by the last word."""

import math
from dataclasses import replace

import numpy as np
import torch
from automata import from_states
from dynamic_prior import AfterLastWord
from torch import Tensor

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.automata.automaton import NOTHING, ROOT, Automaton
from fairseq_llrnn.backgrounds.algebra import Product
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.backgrounds.background import Background, StaticBackground
from fairseq_llrnn.backgrounds.cache_background import Cache
from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.evidence.evidence_table import EvidenceTable, slot_features
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.features.feature_table import FeatureTable, group_equal_rows
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart, evidence_table
from fairseq_llrnn.prior.prior import Prior

INF = math.inf
PAD, EOS, UNK = 1, 2, 3
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
SOURCE_WORDS = (*SPECIALS, "two", "12", "1,000", "Ann", "dog", "7")
TARGET_WORDS = (*SPECIALS, "deux", "12", "99", "7", "000", "chien", "chat", "Ann", "Léa", "interdit")
RULES = EvidenceRules(("mapped", "numbers", "names", "copies"), {"1,000": ("1", "000"), "two": ("deux",)}, {}, 0.25)
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


OUTPUT = group_equal_rows(FeatureTable.from_rows(class_rows())).with_names(slot_features(RULES))
PRIOR = Prior(TARGET_WORDS, OUTPUT, OUTPUT, np.zeros(14), {}, SOURCE_WORDS, (EvidencePart(RULES),))
CLASS_OF = torch.from_numpy(OUTPUT.class_of.copy())
NUM_CLASSES = OUTPUT.num_classes
FORBIDDEN = [0, 1, TARGET_WORDS.index("interdit")]


def new_table() -> EvidenceTable:
    """That of a prior which nobody has used yet."""
    return evidence_table(replace(PRIOR))


def log_weights(seed: int = 0) -> Tensor:
    weights = torch.randn(len(TARGET_WORDS), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weights[FORBIDDEN] = -INF
    return weights.log_softmax(0)


def base(kind: str, seed: int = 0) -> Background:
    """One of a kind; "times" and "plus" make products and mixtures."""
    if " times " in kind:
        return Product([base(each, seed) for each in kind.split(" times ")])
    if " plus " in kind:
        return Mixture([base(each, seed) for each in kind.split(" plus ")], weighting="learned").double()
    if kind == "cache":
        return Cache(CLASS_OF, NUM_CLASSES, log_weights(seed), 2, 0.4, 0.8)
    if kind == "static":
        return StaticBackground(CLASS_OF, NUM_CLASSES, log_weights(seed))
    if kind == "dynamic":
        table = torch.randn(14, 14, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        table[:, FORBIDDEN] = -INF
        return AfterLastWord(CLASS_OF, NUM_CLASSES, table, EOS)
    if kind == "automaton":
        return AutomatonBackground(CLASS_OF, NUM_CLASSES, log_weights(seed), grammar(seed))
    random = np.random.default_rng(seed)
    words = [i for i in range(4, 14) if i not in FORBIDDEN]
    sources = np.repeat(np.arange(4, 10), len(words))
    table = LexicalTable.from_pairs(sources, np.tile(words, 6), random.random(len(sources)), len(SOURCE_WORDS), 3)
    counted = torch.tensor([s not in ("<s>", "<pad>", "</s>") for s in SOURCE_WORDS])
    is_word = torch.tensor([s not in SPECIALS for s in TARGET_WORDS])
    return LexicalBackground(CLASS_OF, NUM_CLASSES, log_weights(seed), table, is_word, counted, 0.3, True).double()


def grammar(seed: int = 0) -> Automaton:
    """Six states: some forbid what they have no arc on, others leave it to the root; every one has an end in reach."""
    rng = np.random.default_rng(seed)
    allowed = [x for x in range(EOS, len(TARGET_WORDS)) if x not in FORBIDDEN]
    states = []
    for state in range(6):
        words = [x for x in allowed if rng.random() < 0.4] + [allowed[-1]]
        arcs = {x: (float(rng.normal(-1, 1)), 0 if x == EOS else int(rng.integers(6))) for x in words}
        arcs[UNK] = (-2.0, min(state + 1, 5))  # in the last state
        states.append(arcs | ({EOS: (-1.0, 0)} if state == 5 else {}))
    root_next = [-1 if x in FORBIDDEN else 0 if x == EOS else x % 6 for x in range(len(TARGET_WORDS))]
    fail = [NOTHING, ROOT, NOTHING, 1, ROOT, NOTHING]
    costs = [0.0, -0.5, 0.0, -1.5, 0.7, 0.0]
    return from_states(states, len(TARGET_WORDS), fail=fail, back_off=costs, root_next=root_next)


def encode(table: EvidenceTable, lines: tuple[str, ...] = SENTENCES) -> Tensor:
    ids = [[3 if (i := table.source_index(word)) is None else i for word in line.split()] for line in lines]
    longest = max(map(len, ids))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in ids])
