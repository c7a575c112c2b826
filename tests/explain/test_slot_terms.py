"""Explanations where the source has slots, against the enumeration of V words and J strings, in double precision."""

import math
from dataclasses import dataclass

import pytest
import torch
from dynamic_prior import AfterLastWord
from torch import Tensor

from fairseq_llrnn.evidence.evidence_table import slot_features
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.evidence.slots import LOG_UNK_KEEPS, EvidenceMixture, SlotRows
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.explain.explanation import Explanation, explain
from fairseq_llrnn.explain.source_terms import SlotTerms
from fairseq_llrnn.features.feature_table import FeatureTable, group_equal_rows
from fairseq_llrnn.output.normalisers import LogLinearOutput
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart, evidence_table
from fairseq_llrnn.prior.prior import Prior

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
PAD, EOS, UNK = 1, 2, 3
ROWS = {
    **{symbol: {f"SPECIAL:{symbol}": 1.0} for symbol in SPECIALS},
    "12": {"NOTTOP": 1.0, "POS:NUM": 1.0, "Shape:SmallNumber": 0.63},
    "99": {"NOTTOP": 1.0, "POS:NUM": 1.0, "Shape:SmallNumber": 0.63},
    "000": {"TOPFORM:000": 1.0, "POS:NUM": 1.0},
    "chien": {"NOTTOP": 1.0, "POS:NOUN": 1.0},
    "chat": {"NOTTOP": 1.0, "POS:NOUN": 1.0},
    "interdit": {"NOTTOP": 1.0, "POS:NOUN": 1.0},
}
WORDS = tuple(ROWS)
FORBIDDEN = [WORDS.index(word) for word in ("<s>", "<pad>", "interdit")]
RULES = EvidenceRules(("mapped", "numbers", "names"), {"1,000": ("1", "000")}, {}, 0.5)
SOURCE_WORDS = (*SPECIALS, "12", "1,000", "dog")
SOURCE = "Zoé dog 12 1,000 Zoé </s>".split()
SLOTS = {  # by string, in the table's order: kind, places, features beside the place
    "1": ("mapped", (3,), {"NOTTOP": 1.0, "Evidence:Mapped": 1.0}),
    "000": ("mapped", (3,), ROWS["000"] | {"Evidence:Mapped": 1.0, "Evidence:Next": 1.0}),
    "12": ("numbers", (2,), ROWS["12"] | {"Evidence:Number": 1.0}),
    "Zoé": ("names", (0, 4), {"NOTTOP": 1.0, "Evidence:Name": 1.0, "Evidence:Unknown": 1.0}),
}
SENTENCE = ["12", "Zoé", "chien", "000", "1", "nowhere", "99", "interdit", "</s>"]
ENCODER, HIDDEN = 3, 4


@dataclass
class Case:
    prior: Prior
    base: torch.nn.Module
    bound: EvidenceMixture
    output: LogLinearOutput
    pointer: SlotRows
    states: Tensor  # (1, L, E)
    hidden: Tensor  # (T, H)
    tokens: Tensor  # (T,)
    explained: list[Explanation]

    def adaptor(self, t: int) -> dict[str, float]:
        a = self.output.weight.detach() @ self.hidden[t] + self.output.bias.detach()
        return dict(zip(self.prior.output.features.names, a.tolist(), strict=True))

    def place(self, t: int, string: str) -> float:
        """h·P s, s the mean state over the places of the slot."""
        mean = self.states[0, list(SLOTS[string][1])].mean(0)
        return float(self.hidden[t] @ self.pointer.pointer.detach() @ mean)

    def background(self, t: int) -> dict[str, float]:
        """b(C; x) by its formula, normalised, for every word and string."""
        state = self.base.start(1)
        for token in self.tokens[:t].tolist():
            state = self.base.advance(state, torch.tensor([token if token < len(WORDS) else UNK]))
        weights = dict(zip(WORDS, self.base.view(state).log_weights[0].exp().tolist(), strict=True))
        weights["<unk>"] *= math.exp(LOG_UNK_KEEPS)
        for string in SLOTS:
            weights[string] = weights.get(string, 0.0) + RULES.weight / len(SLOTS)
        total = math.fsum(weights.values())
        return {string: weight / total for string, weight in weights.items()}

    def features(self, string: str) -> dict[str, float]:
        return SLOTS[string][2] if string in SLOTS else ROWS[string]

    def distribution(self, t: int) -> dict[str, float]:
        """p(x | K), by the definition."""
        adaptor, scores = self.adaptor(t), {}
        for string, weight in self.background(t).items():
            score = sum(adaptor[name] * value for name, value in self.features(string).items())
            scores[string] = weight * math.exp(score + (self.place(t, string) if string in SLOTS else 0.0))
        total = math.fsum(scores.values())
        return {string: score / total for string, score in scores.items()}


def make(kind: str = "static", source: list[str] = SOURCE, sentence: list[str] = SENTENCE) -> Case:
    generator = torch.Generator().manual_seed(11)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    signatures = group_equal_rows(FeatureTable.from_rows(list(ROWS.values()))).with_names(slot_features(RULES))
    table = randn(len(WORDS), len(WORDS))
    table[:, FORBIDDEN] = -math.inf
    weights = table[0].log_softmax(0).numpy()
    prior = Prior(WORDS, signatures, signatures, weights, {}, SOURCE_WORDS, (EvidencePart(RULES),))
    unbound = prior.background()
    if kind == "dynamic":
        after = AfterLastWord(torch.from_numpy(signatures.class_of.copy()), signatures.num_classes, table, EOS)
        unbound = EvidenceBackground(after, evidence_table(prior), UNK, SOURCE_WORDS.index("<unk>"))
    ids = [evidence_table(prior).source_index(word) for word in source]
    bound = unbound.bind(torch.tensor([[UNK if i is None else i for i in ids]]))
    assert isinstance(unbound, EvidenceBackground) and isinstance(bound, EvidenceMixture)
    output = LogLinearOutput(signatures.features, torch.from_numpy(signatures.class_of.copy()), HIDDEN).double()
    pointer = SlotRows(ENCODER, HIDDEN).double()
    with torch.no_grad():
        for parameter in (output.weight, output.bias, pointer.pointer):
            parameter.copy_(randn(*parameter.shape))
    states, hidden = randn(1, len(source), ENCODER), randn(len(sentence), HIDDEN)
    tokens = torch.tensor([evidence_table(prior).target.index(word) for word in sentence])
    rows, bias = pointer(bound.source, output.weight, output.bias, states)
    scores = torch.cat([output.class_scores(hidden), hidden @ rows[0].T + bias[0]], dim=1)
    view = bound.view_of(tokens.roll(1).unsqueeze(0))
    explained = list(explain(prior, output, view, hidden, tokens, scores, view.class_mass.dense(), 3, rows[0]))
    return Case(prior, unbound.base, bound, output, pointer, states, hidden, tokens, explained)


@pytest.fixture(params=["static", "dynamic"])
def case(request: pytest.FixtureRequest) -> Case:
    return make(request.param)


def test_probabilities_ranks_and_predictions(case: Case) -> None:
    assert [e.token for e in case.explained] == ["<unk>" if word == "nowhere" else word for word in SENTENCE]
    for t, e in enumerate(case.explained):
        p, b = case.distribution(t), case.background(t)
        assert math.exp(e.log_prob) == pytest.approx(p[e.token], rel=1e-5)
        assert math.exp(e.log_background) == pytest.approx(b[e.token], rel=1e-5)
        assert e.rank == 1 + sum(other > p[e.token] * (1 + 1e-9) for other in p.values())
        best = sorted(p, key=lambda string: -p[string])[:3]
        assert [string for string, _ in e.predictions] == best
        assert [math.exp(value) for _, value in e.predictions] == pytest.approx([p[s] for s in best], rel=1e-5)
    assert {string for e in case.explained for string, _ in e.predictions} >= {"Zoé", "1"}, "slots are predicted"


def test_the_terms_of_words_and_slots_sum_to_what_the_network_adds(case: Case) -> None:
    for t, (word, e) in enumerate(zip(SENTENCE, case.explained, strict=True)):
        weights = case.adaptor(t)
        expected = {name: weights[name] * value for name, value in case.features(e.token).items()}
        if word in SLOTS:
            expected["Evidence:Place"] = case.place(t, word)
        assert dict(e.own_features) == pytest.approx(expected, rel=1e-5)
        sizes = [abs(value) for _, value in e.own_features]
        assert sizes == sorted(sizes, reverse=True)
        if word != "interdit":
            own = math.fsum(value for _, value in e.own_features)
            assert e.log_prob == pytest.approx(e.log_background + own + e.normaliser, abs=1e-5)
        else:
            assert (e.log_prob, e.log_background) == (-math.inf, -math.inf)


def test_expected_features_count_the_slots(case: Case) -> None:
    for t, e in enumerate(case.explained):
        p, b = case.distribution(t), case.background(t)
        change = {
            name: tuple(sum(q[s] * case.features(s).get(name, 0.0) for s in q) for q in (b, p))
            for name in case.prior.output.features.names
            if not name.startswith(("TOPFORM:", "SPECIAL:"))
        }
        order = sorted(change, key=lambda name: -abs(change[name][1] - change[name][0]))
        assert [name for name, _, _ in e.expected] == order[:3]
        for name, before, after in e.expected:
            assert (before, after) == pytest.approx(change[name], rel=1e-5)
    assert any(name.startswith("Evidence:") for e in case.explained for name, _, _ in e.expected)


def test_all_slots_at_every_position(case: Case) -> None:
    for t, (word, e) in enumerate(zip(SENTENCE, case.explained, strict=True)):
        p, b = case.distribution(t), case.background(t)
        assert e.slots is not None
        assert [(s.string, s.kind, s.places) for s in e.slots] == [(s, *SLOTS[s][:2]) for s in SLOTS]
        for slot in e.slots:
            assert math.exp(slot.log_prob) == pytest.approx(p[slot.string], rel=1e-5)
            assert math.exp(slot.log_background) == pytest.approx(b[slot.string], rel=1e-5)
        assert e.slot == next((slot for slot in e.slots if slot.string == word), None)
        if e.slot is not None:
            assert (e.slot.log_prob, e.slot.log_background) == pytest.approx((e.log_prob, e.log_background), abs=1e-5)


def test_a_source_without_evidence() -> None:
    sentence = ["Zoé", "chien", "12"]
    case = make(source=["dog", "</s>"], sentence=sentence)
    assert [e.token for e in case.explained] == ["<unk>", "chien", "12"]
    assert all(e.slots == () and e.slot is None for e in case.explained)
    without = case.prior.without(EvidencePart)
    background, scores = without.background().bind(), case.output.class_scores(case.hidden)
    tokens = torch.tensor([UNK, 7, 4])
    view = background.view_of(tokens.unsqueeze(0))
    plainly = explain(without, case.output, view, case.hidden, tokens, scores, view.class_mass.dense(), 3)
    for e, plain in zip(case.explained, plainly, strict=True):
        assert (e.log_prob, e.log_background) == pytest.approx((plain.log_prob, plain.log_background), abs=1e-6)
        assert (plain.slots, plain.slot, plain.rank) == (None, None, e.rank)
        assert dict(e.own_features) == pytest.approx(dict(plain.own_features))


def test_slots_of_one_sentence_are_asked_for_with_their_rows() -> None:
    case = make()
    with pytest.raises(ValueError, match="a background with slots needs their rows"):
        view = case.bound.view_of(case.tokens.unsqueeze(0))
        next(explain(case.prior, case.output, view, case.hidden, case.tokens, case.hidden, case.hidden, 3))
    two = EvidenceBackground(case.base, evidence_table(case.prior), UNK, UNK).bind(torch.tensor([[4], [4]]))
    assert isinstance(two, EvidenceMixture)
    with pytest.raises(ValueError, match="expected the slots of one sentence, found those of 2"):
        SlotTerms(two, [], case.prior.output.features, case.output, case.hidden, case.hidden)
