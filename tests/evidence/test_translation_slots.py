"""Lexical translations as slots: what is offered, where, and the exact distribution, word by word; leave-one-out."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from context_class_laws import check_context_classes
from hypothesis import given, settings
from hypothesis import strategies as st
from small_priors import random_head
from torch import Tensor

from fairseq_llrnn.alignment.source_lemmas import LemmaForms
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.algebra import Product
from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.evidence.counted_slots import CountedSlots
from fairseq_llrnn.evidence.evidence_table import slot_features
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.evidence.slots import EvidenceMixture
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground, TranslationSlots, without_identity
from fairseq_llrnn.features.feature_table import FeatureTable, group_equal_rows
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart, evidence_table
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.testing import check_class_features

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
PAD, EOS, UNK = 1, 2, 3
SOURCE = (*SPECIALS, "dog", "dogs", "cat", "12", "see", "rare")
# psu is a form of both lemmas; no sentence has psem and kočce; pes and vidí have an identity
ROWS: dict[str, dict[str, float]] = {
    **{symbol: {f"SPECIAL:{symbol}": 1.0} for symbol in SPECIALS},
    "pes": {"TOPFORM:pes": 1.0, "Case:Nom": 1.0},
    "psa": {"NOTTOP": 1.0, "Case:Gen": 1.0},
    "psem": {"NOTTOP": 1.0, "Case:Ins": 1.0},
    "psu": {"NOTTOP": 1.0, "Case:Dat": 1.0},
    "kočka": {"NOTTOP": 1.0, "Case:Nom": 1.0},
    "kočce": {"NOTTOP": 1.0, "Case:Dat": 1.0},
    "12": {"NOTTOP": 1.0, "POS:NUM": 1.0},
    "vidí": {"TOPFORM:vidí": 1.0},
}
WORDS = tuple(ROWS)
LEMMAS: list[list[str]] = [[], [], [], [], ["pes"], ["pes"], ["pes"], ["pes", "kočka"], ["kočka"], ["kočka"], [], []]
PAIRS = [  # each source word linked to the target word in its place
    ("dog see", "pes vidí"), ("see dogs", "vidí psa"), ("cat see", "kočka vidí"), ("dog 12", "psa 12"), ("rare", "psu"),
    ("see cat", "vidí pes"), ("dog", "pes"),
]  # fmt: skip
RULES = EvidenceRules(("numbers", "translations"), {}, {}, 0.5)
H, E = 3, 2


def ids(line: str, symbols: tuple[str, ...]) -> list[int]:
    return [symbols.index(word) if word in symbols else UNK for word in line.split()]


Links = list[tuple[list[int], list[int]]]
LINKED: Links = [(ids(source, SOURCE), ids(target, WORDS)) for source, target in PAIRS]
IS_WORD = np.arange(len(WORDS)) >= len(SPECIALS)


def forms_of(pairs: Links) -> LemmaForms:
    counts = np.bincount([x for _, target in pairs for x in target], minlength=len(WORDS))
    return LemmaForms.from_lemmas(LEMMAS, counts, IS_WORD)


FORMS = forms_of(LINKED)


def make_prior(lemmas: bool = True, learned: bool = False) -> Prior:
    """Translations between lemmas, or between words."""
    unit = FORMS.head_of if lemmas else np.arange(len(WORDS))
    links = Counter((s, int(unit[x])) for source, target in LINKED for s, x in zip(source, target, strict=True))
    sources, units = (np.array(side) for side in zip(*links, strict=True))
    table = LexicalTable.from_pairs(sources, units, np.array(list(links.values()), dtype=float), len(SOURCE), 9)
    part = LexicalPart(table, 0.4, learned, "ibm1", FORMS if lemmas else None, 0.5 if lemmas else 0.0)
    signatures = group_equal_rows(FeatureTable.from_rows(list(ROWS.values()))).with_names(slot_features(RULES))
    weights = torch.randn(len(WORDS), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    weights[:2] = -math.inf
    return Prior(WORDS, signatures, signatures, weights.log_softmax(0).numpy(), {}, SOURCE, (part, EvidencePart(RULES)))


def said(source: list[int], pairs: Links, lemmas: bool = True) -> dict[int, dict[int, float]]:
    """What the pairs, counted one by one, say of each place: word -> place -> a weight in proportion to e."""
    counts = np.bincount([x for _, target in pairs for x in target], minlength=len(WORDS))
    own: list[str | None] = [None] * len(WORDS)  # the lemma that a word's tokens count for: that of all pairs
    for word, its in enumerate(LEMMAS):
        own[word] = next((lemma for lemma in its if FORMS.head_of[WORDS.index(lemma)] == FORMS.head_of[word]), None)
    found: dict[int, dict[int, float]] = {}
    for place, s in enumerate(source):
        linked = [x for src, target in pairs for t, x in zip(src, target, strict=True) if t == s]
        for x in linked:
            lemma = own[x]
            if not lemmas or lemma is None:
                forms, shares = [x], [1.0]
            else:
                forms = [w for w in range(4, len(WORDS)) if lemma in LEMMAS[w]]
                shares = [((counts[w] if own[w] == lemma else 0) + 0.5) ** 0.5 for w in forms]
            for w, share in zip(forms, shares, strict=True):
                places = found.setdefault(w, {})
                places[place] = places.get(place, 0.0) + share / sum(shares) / len(linked)
    return found


def expected(source: list[int], pairs: Links, lemmas: bool = True) -> dict[int, dict[int, float]]:
    """Slots of a sentence beside evidence: words without an identity first, then the likeliest."""
    found = said(source, pairs, lemmas)
    numbers = {WORDS.index(SOURCE[s]) for s in source if SOURCE[s].isdecimal()}
    kept = sorted(w for w in found if w not in numbers)
    return {w: found[w] for w in sorted(kept, key=lambda w: (is_common(w), -round(sum(found[w].values()), 9)))}


def is_common(word: int) -> bool:
    return "NOTTOP" not in ROWS[WORDS[word]]


def offered(bound: EvidenceMixture, row: int) -> dict[int, dict[int, float]]:
    """Slots without mass of their own: word -> place -> weight, in their order."""
    slots, many = bound.slots, bound.slots.words.size(1)
    found: dict[int, dict[int, float]] = {}
    for j, word in enumerate(slots.words[row].tolist()):
        if word >= 0 and slots.log_part[row, j].isneginf():
            at = slots.place_slot == row * many + j
            found[word] = dict(zip(slots.place[at].tolist(), slots.place_weight[at].tolist(), strict=True))
    return found


def assert_alike(found: dict[int, dict[int, float]], wanted: dict[int, dict[int, float]], scale: float) -> None:
    """Equal words in equal order, but for ties; weights in proportion."""
    assert list(found) == list(wanted)
    for word, places in wanted.items():
        assert found[word] == pytest.approx({place: weight * scale for place, weight in places.items()}, rel=1e-4)


def bind(prior: Prior, sources: list[list[int]], leave_out: Tensor | None = None) -> EvidenceMixture:
    bound = prior.background().bind(padded(sources), leave_out)
    assert isinstance(bound, EvidenceMixture)
    return bound


def padded(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows)) + 1
    return torch.tensor([[*row, EOS, *[PAD] * (longest - 1 - len(row))] for row in rows])


def word_mass(prior: Prior) -> float:
    return float(np.exp(prior.log_weights)[IS_WORD].sum())


SENTENCES = [ids(line, SOURCE) for line in ("dog see cat dog", "12 rare", "nobody", "cat 12 see")]


@pytest.mark.parametrize("lemmas", [True, False])
def test_what_is_offered_where(lemmas: bool) -> None:
    prior = make_prior(lemmas)
    bound = bind(prior, SENTENCES)
    for row, source in enumerate(SENTENCES):
        assert_alike(offered(bound, row), expected(source, LINKED, lemmas), word_mass(prior) / len(source))
    if lemmas:
        assert WORDS.index("psem") in offered(bound, 0), "a form that no sentence has"


def test_what_is_evidence_anyway_is_no_such_slot() -> None:
    prior = make_prior()
    bound = bind(prior, SENTENCES)
    assert WORDS.index("12") not in offered(bound, 1)
    assert WORDS.index("12") in bound.slots.words[1].tolist(), "evidence has it"
    assert bound.slots.sizes.tolist() == [len(offered(bound, row)) + (row in (1, 3)) for row in range(4)]
    rare = without_identity(prior.output)[prior.output.class_of]
    assert [word for word, one in zip(WORDS, rare, strict=True) if not one] == ["pes", "vidí"], "have an identity"


def test_no_more_than_the_likeliest_find_room() -> None:
    prior = make_prior()
    unbound = prior.background()
    assert isinstance(unbound, EvidenceBackground)
    unbound.translations = TranslationSlots(prior.output, (2, 1))
    bound = unbound.bind(padded(SENTENCES))
    assert isinstance(bound, EvidenceMixture)
    for row, source in enumerate(SENTENCES):
        wanted = expected(source, LINKED)
        kept = [w for w in wanted if not is_common(w)][:2] + [w for w in wanted if is_common(w)][:1]
        assert_alike(offered(bound, row), {w: wanted[w] for w in kept}, word_mass(prior) / len(source))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, len(PAIRS) - 1), min_size=1, max_size=3), st.booleans())
def test_training_offers_what_the_other_sentences_would_offer(batch: list[int], lemmas: bool) -> None:
    """Everything counted again without the sentence, one sentence at a time."""
    prior = make_prior(lemmas)
    bound = bind(prior, [LINKED[i][0] for i in batch], padded([LINKED[i][1] for i in batch]))
    for row, i in enumerate(batch):
        others = [pair for n, pair in enumerate(LINKED) if n != i]
        wanted = expected(LINKED[i][0], others, lemmas)
        assert_alike(offered(bound, row), wanted, word_mass(prior) / len(LINKED[i][0]))


def test_what_only_the_sentence_has_taught_is_not_offered() -> None:
    source, target = ids("rare", SOURCE), padded([ids("psu", WORDS)])
    assert WORDS.index("psu") in offered(bind(make_prior(), [source]), 0)
    assert offered(bind(make_prior(), [source], target), 0) == {}


@pytest.mark.parametrize("lemmas", [True, False])
def test_they_are_lawful_context_classes_that_add_no_mass(lemmas: bool) -> None:
    bound = bind(make_prior(lemmas), SENTENCES)
    history = torch.tensor([[EOS, 4, 6], [EOS, 10, 7], [EOS, 5, 8], [EOS, 9, 9]])
    check_context_classes(bound, history)
    state = bound.start(len(SENTENCES))
    numbers = torch.tensor([0.0, 0.5, 0.0, 0.5])  # what evidence adds
    torch.testing.assert_close(bound.view(state).class_mass.dense().exp().sum(1).float(), 1.0 + numbers)


def test_a_word_that_another_background_forbids_has_no_mass_and_no_gradient_of_its_own() -> None:
    prior = make_prior(learned=True)
    below = replace(prior, parts=prior.parts[:1]).background()
    factors = torch.zeros(len(WORDS))
    factors[WORDS.index("psa")] = -math.inf
    classes, many = torch.from_numpy(prior.output.class_of.copy()), prior.output.num_classes
    both = Product([below, StaticBackground(classes, many, factors)])
    table, translations = evidence_table(prior), TranslationSlots(prior.output)
    bound = EvidenceBackground(both, table, UNK, UNK, translations).bind(padded(SENTENCES[:1]))
    assert isinstance(bound, EvidenceMixture)
    column = bound.slots.words[0].tolist().index(WORDS.index("psa"))
    mass = bound.view(bound.start(1)).class_mass.dense()[0]
    assert mass[bound.num_below + column].isneginf()
    mass.exp().sum().backward()
    (learned,) = below.parameters()
    assert learned.grad is not None and learned.grad.isfinite()


def test_each_is_said_as_often_as_one_likes() -> None:
    prior = make_prior()
    evidence_table(prior).once = True
    bound = prior.background().bind(padded(SENTENCES[:2]))
    assert isinstance(bound, CountedSlots), "12 is counted"
    psa = torch.tensor([WORDS.index("psa")] * 2)
    state = bound.start(2)
    before, after = bound.view(state).class_mass.dense(), bound.view(bound.advance(state, psa)).class_mass.dense()
    torch.testing.assert_close(after, before)


@pytest.mark.parametrize("training", [False, True])
def test_the_distribution_is_that_of_all_words_with_their_scores(training: bool) -> None:
    """p(x | K) ∝ b(C; x) exp(a·φ(x)), and for slots the pointer's score beside it; values and gradients."""
    prior = make_prior()
    head = random_head(prior, H, source_size=E).train(training)
    source = padded([LINKED[0][0], LINKED[2][0]])
    targets = padded([LINKED[0][1], LINKED[2][1]])
    previous = head.previous(targets)
    generator = torch.Generator().manual_seed(6)
    hidden = torch.randn(2, 3, H, generator=generator, dtype=torch.float64, requires_grad=True)
    states = torch.randn(2, source.size(1), E, generator=generator, dtype=torch.float64, requires_grad=True)
    found = head.log_probs(hidden, previous=previous, source=source, source_states=states)
    phi = head.output.rows.dense().double()[head.output.class_of]  # shape: (V, F)
    scores = (hidden @ head.output.weight.T + head.output.bias) @ phi.T  # shape: (B, T, V)
    own = prior.output.features.index["Evidence:Translation"]
    extra = torch.zeros(2, 1, len(WORDS), dtype=torch.float64)
    pointed = torch.zeros(2, len(WORDS), E, dtype=torch.float64)
    slots = torch.zeros_like(extra)
    assert head.slot_rows is not None
    rows = []
    for row in range(2):
        others = [pair for n, pair in enumerate(LINKED) if not (training and n == (0, 2)[row])]
        wanted = expected(LINKED[(0, 2)[row]][0], others)
        assert wanted
        means = []
        for word in range(len(WORDS)):
            places = wanted.get(word, {})
            total = sum(places.values())
            slots[row, 0, word] = float(bool(places))
            means.append(sum((states[row, at] * (w / total) for at, w in places.items()), pointed[row, word]))
        rows.append(torch.stack(means))
    kind = (hidden @ head.output.weight[own] + head.output.bias[own]).unsqueeze(-1) * slots
    place = hidden @ head.slot_rows.pointer @ torch.stack(rows).transpose(1, 2)
    lexical = replace(prior, parts=prior.parts[:1]).background()
    lexical = lexical.double().bind(source, previous if training else None)
    weights = lexical.view(lexical.start(2)).log_weights.double()
    slow = (scores + kind + place + weights.unsqueeze(1)).log_softmax(-1)
    torch.testing.assert_close(found[..., : len(WORDS)].exp(), slow.exp(), rtol=1e-5, atol=1e-7)
    weighed = torch.linspace(0.5, 1.5, slow[..., 2:].numel(), dtype=torch.float64).view_as(slow[..., 2:])
    leaves = [hidden, states, head.output.weight, head.slot_rows.pointer]
    ours = torch.autograd.grad((found[..., 2 : len(WORDS)] * weighed).sum(), leaves)
    theirs = torch.autograd.grad((slow[..., 2:] * weighed).sum(), leaves)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    log_p = head.target_log_probs(head.batch(hidden, head.bind(previous, source), states), targets)
    torch.testing.assert_close(log_p, slow.gather(2, targets.unsqueeze(2)).squeeze(2), rtol=1e-4, atol=1e-5)
    of_slots = check_class_features(head, hidden, targets, source, states)["slot_rows"].unflatten(0, targets.shape)
    for row, word in slots.squeeze(1).nonzero().tolist():
        as_slot = phi[word].index_fill(0, torch.tensor(own), 1.0)
        assert any(torch.equal(as_slot, of_slot) for of_slot in of_slots[row, 0])
