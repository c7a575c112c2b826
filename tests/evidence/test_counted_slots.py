"""Slots that know what was said: the laws, and equality with enumeration over all strings of a tiny vocabulary."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from context_class_laws import check_context_classes
from few_words import (
    CLASS_OF,
    EOS,
    FORBIDDEN,
    NUM_CLASSES,
    PRIOR,
    SENTENCES,
    TARGET_WORDS,
    UNK,
    base,
    encode,
)
from said_slots import Group, counted, factor
from torch import Tensor

from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.evidence.counted_slots import CountedSlots, Quotas, QuotaSlots, quotas_of
from fairseq_llrnn.evidence.evidence_table import EvidenceTable
from fairseq_llrnn.evidence.slots import EvidenceMixture, EvidenceSlots
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.output.normalisers import Distribution, class_log_probs
from fairseq_llrnn.prior.parts.evidence_part import evidence_table

# the groups of each sentence: one of several strings that share some, and groups that are asked for more than once
GROUPS = [
    [Group(("deux", "12"), 1, "must"), Group(("12", "Ann"), 2, "wanted"), Group(("Ann",), 1, "once")],
    [Group(("Zoé",), 1, "must"), Group(("Bob", "000", "1"), 1, "must"), Group(("Zoé", "Bob"), 1, "once")],
    [],
    [Group(("12", "7", "99"), 3, "must")],
    [],
]
STRINGS = ["12", "Zoé", "Bob", "Ann", "chien", "</s>", "<unk>", "deux", "7"]


def counted_table() -> EvidenceTable:
    table = evidence_table(replace(PRIOR))
    table.once = True
    return table


def grouped(table: EvidenceTable, mixture: EvidenceMixture, groups: list[list[Group]]) -> CountedSlots:
    """The groups of each sentence over its slots; strings that are no slot of it are left out."""
    slots, many = mixture.slots, max(1, *map(len, groups))
    member = torch.zeros(*slots.words.shape, many, dtype=torch.bool)
    most = torch.zeros(len(groups), many, dtype=torch.long)
    kinds = torch.zeros(2, len(groups), many, dtype=torch.bool)
    for b, some in enumerate(groups):
        for g, group in enumerate(some):
            words = torch.tensor([table.target.index(string) for string in group.strings])
            member[b, :, g] = torch.isin(slots.words[b], words)
            most[b, g], kinds[0, b, g], kinds[1, b, g] = group.most, group.kind == "must", group.kind == "wanted"
    quotas = Quotas(member, most, kinds[0], kinds[1])
    return CountedSlots(mixture.base, QuotaSlots(slots, UNK, table.rules.weight, quotas))


def without_quotas(bound: EvidenceMixture, table: EvidenceTable) -> EvidenceMixture:
    return EvidenceMixture(bound.base, EvidenceSlots(bound.slots, UNK, table.rules.weight))


def make(kind: str, seed: int = 0) -> tuple[EvidenceTable, CountedSlots]:
    table = evidence_table(replace(PRIOR))
    mixture = EvidenceBackground(base(kind, seed), table, UNK, UNK).bind(encode(table))
    assert isinstance(mixture, EvidenceMixture)
    return table, grouped(table, mixture, GROUPS)


def some_histories(table: EvidenceTable, seed: int, length: int = 4) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    ids = torch.tensor([table.target.index(string) for string in STRINGS])
    return ids[torch.randint(len(ids), (len(SENTENCES), length), generator=random)]


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("static", 0), ("lexical", 1), ("dynamic", 2), ("automaton", 1), ("automaton", 2), ("automaton times lexical", 1)],
)
def test_the_laws_of_context_classes_hold(kind: str, seed: int) -> None:
    table, bound = make(kind, seed)
    history = some_histories(table, seed)
    history[:, 0] = EOS
    check_context_classes(bound, history)


@pytest.mark.parametrize("kind", ["static", "lexical", "dynamic", "automaton"])
@pytest.mark.parametrize("seed", range(5))
def test_weights_are_those_below_times_the_factor_of_what_was_said(kind: str, seed: int) -> None:
    table, bound = make(kind, seed)
    history, mixture = some_histories(table, seed), without_quotas(bound, table)
    state, symbols = bound.start(len(SENTENCES)), table.target.symbols
    before = mixture.start(len(SENTENCES))
    for t in range(history.size(1)):
        view, weights = bound.view(state), mixture.view(before).log_weights
        found, columns = view.log_weights, view.columns
        for b, groups in enumerate(GROUPS):
            offered = [symbols[w] for w in bound.slots.words[b].tolist() if w >= 0]
            groups = [replace(g, strings=tuple(s for s in g.strings if s in offered)) for g in groups]
            said = [symbols[token] for token in history[b, :t].tolist()]
            counts = bound.source.most[b] - bound.columns_of(state)[b, 1:]
            assert counts[: len(groups)].tolist() == counted(groups, said)
            for column, token in enumerate(columns[b].tolist()):
                expected = math.exp(weights[b, column]) * factor(groups, said, symbols[token])
                if column >= len(TARGET_WORDS) and weights[b, column].isneginf():
                    expected = 0.0  # a void column
                assert math.exp(found[b, column]) == pytest.approx(expected, rel=1e-5), (b, said, symbols[token])
        state, before = bound.advance(state, history[:, t]), mixture.advance(before, history[:, t])


# ---- all strings of a tiny vocabulary --------------------------------------------------------------------------------

FEW = ["12", "Ann", "deux", "chien"]
LONGEST = 5  # tokens, </s> included
TINY = [[Group(("12", "deux"), 1, "must"), Group(("Ann",), 1, "must")]]


def tiny() -> tuple[EvidenceTable, CountedSlots, Tensor]:
    """One sentence, a background of four words and </s>, and scores by what came before."""
    table = evidence_table(replace(PRIOR))
    weights = torch.full((len(TARGET_WORDS),), -math.inf, dtype=torch.float64)
    weights[[EOS, *(TARGET_WORDS.index(word) for word in FEW)]] = torch.tensor([0.1, 0.2, 0.3, 0.1, 0.3]).double().log()
    mixture = EvidenceBackground(StaticBackground(CLASS_OF, NUM_CLASSES, weights), table, UNK, UNK)
    made = mixture.bind(encode(table, SENTENCES[:1]))
    assert isinstance(made, EvidenceMixture)
    scores = torch.randn(8, made.num_classes, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return table, grouped(table, made, TINY), scores.requires_grad_()


def enumerated(scores: Tensor, limit: int | None) -> dict[tuple[str, ...], Tensor]:
    """p of every finished string of up to LONGEST tokens, by the definition, in its own normalisation of each step."""
    table, bound, _ = tiny()
    mixture = without_quotas(bound, table)
    state = mixture.start(1)
    log_b, symbols = mixture.view(state).log_weights[0].double(), table.target.symbols
    classes, columns = mixture.view(state).column_classes[0].tolist(), mixture.view(state).columns[0].tolist()
    real = {symbols[token]: i for i, token in enumerate(columns) if not log_b[i].isneginf()}
    found: dict[tuple[str, ...], Tensor] = {}

    def extend(said: tuple[str, ...], log_p: Tensor) -> None:
        of_word = scores[len(said)]
        weights = {
            word: log_b[i].exp() * of_word[classes[i]].exp() * factor(TINY[0], list(said), word)
            for word, i in real.items()
        }
        total = torch.stack(list(weights.values())).sum()
        for word, weight in weights.items():
            if float(weight) == 0.0:
                continue
            log_next = log_p + (weight / total).log()
            if word == "</s>":
                found[said] = log_next.exp()
            elif len(said) + 1 < (limit or LONGEST):
                extend((*said, word), log_next)

    extend((), torch.zeros((), dtype=torch.float64))
    return found


def searched(bound: CountedSlots, table: EvidenceTable, scores: Tensor, said: tuple[str, ...]) -> Tensor:
    """p of a finished string by masses and shares."""
    tokens = [table.target.index(word) for word in (*said, "</s>")]
    state, total = bound.start(1), torch.zeros((), dtype=torch.float64)
    for t, token in enumerate(tokens):
        classes = class_log_probs(scores[t : t + 1], bound.view(state).class_mass.dense().double())
        word = torch.tensor([token])
        share = bound.view(state).locate(word)[1]
        total = total + classes[0, bound.view(state).classes(word)[0]] + share[0]
        state = bound.advance(state, word)
    return total.exp()


def test_probabilities_and_gradients_are_those_of_enumeration() -> None:
    table, bound, scores = tiny()
    slow = enumerated(scores, None)
    chosen = sorted(slow)[:: max(1, len(slow) // 25)]
    fast = [searched(bound, table, scores, said) for said in chosen]
    torch.testing.assert_close(torch.stack(fast), torch.stack([slow[said] for said in chosen]))
    (expected,) = torch.autograd.grad(torch.stack([slow[said] for said in chosen]).sum(), scores)
    (found,) = torch.autograd.grad(torch.stack(fast).sum(), scores)
    torch.testing.assert_close(found, expected)


def test_every_finished_string_has_exactly_one_member_of_each_required_group() -> None:
    *_, scores = tiny()
    for said in enumerated(scores, None):
        for group in TINY[0]:
            assert sum(word in group.strings for word in said) == 1, said


def test_a_string_without_a_required_member_has_probability_zero() -> None:
    table, bound, scores = tiny()
    for said in itertools.product(FEW, repeat=2):
        allowed = all(sum(word in group.strings for word in said) == 1 for group in TINY[0])
        assert (float(searched(bound, table, scores, said)) > 0) == allowed, said


def finished(limit: int, beam: int) -> dict[tuple[str, ...], float]:
    """What a search with a limit of length finds with a beam that keeps everything: each string and its p."""
    table, bound, scores = tiny()
    symbols, found = table.target.symbols, {}
    states, alive = bound.start(1), [((), 0.0)]
    with torch.no_grad():
        for t in range(limit):
            limited = bound.view(states, remaining=limit - t)
            classes = class_log_probs(scores[t : t + 1].expand(len(states), -1), limited.class_mass.dense().double())
            values, tokens = Distribution(classes).best_words(limited, beam)
            rows, after, words = [], [], []
            for n, (said, log_p) in enumerate(alive):
                for value, token in zip(values[n].tolist(), tokens[n].tolist(), strict=True):
                    if value == -math.inf:
                        continue
                    if token == EOS:
                        found[said] = math.exp(log_p + value)
                    else:
                        rows, words = [*rows, n], [*words, token]
                        after.append(((*said, symbols[token]), log_p + value))
            if not rows:
                break
            states, alive = bound.advance(states[rows], torch.tensor(words)), after
        else:
            assert not alive or t == limit - 1
    return found


@pytest.mark.parametrize("limit", [3, 4, 5])
def test_a_full_beam_finds_what_enumeration_finds_and_never_runs_into_the_limit(limit: int) -> None:
    *_, scores = tiny()
    with torch.no_grad():
        slow = {said: float(p) for said, p in enumerated(scores, None).items() if len(said) < limit}
    found = finished(limit, 8)
    assert set(found) == set(slow)
    for said, p in found.items():
        assert p == pytest.approx(slow[said], rel=1e-6)


def test_steps_to_end_count_what_is_required() -> None:
    table, bound, _ = tiny()
    state = bound.start(1)
    for word, steps in (("chien", 3), ("Ann", 2), ("chien", 2), ("deux", 1), ("chien", 1)):
        state = bound.advance(state, torch.tensor([table.target.index(word)]))
        assert int(bound.steps_to_end(state)) == steps, word


def test_probability_goes_to_finished_strings_alone() -> None:
    """What is not finished within a length has the rest, which gets less and less."""
    *_, scores = tiny()
    with torch.no_grad():
        long = torch.cat([scores, scores])
        by_length: dict[int, float] = {}
        for said, p in enumerated(long, 7).items():
            by_length[len(said)] = by_length.get(len(said), 0.0) + float(p)
    total = math.fsum(by_length.values())
    assert 0.3 < total <= 1.0 and by_length.get(0, 0.0) == by_length.get(1, 0.0) == 0.0


# ---- evidence -------------------------------------------------------------------------------------------------------


def test_evidence_is_said_as_often_as_its_source_has_it() -> None:
    table = counted_table()
    bound = EvidenceBackground(base("lexical"), table, UNK, UNK).bind(encode(table))
    assert isinstance(bound, CountedSlots)
    line = SENTENCES.index("1,000 Zoé Bob dog Zoé </s>")
    zoe, plain = table.target.index("Zoé"), without_quotas(bound, table)
    state, before = bound.start(len(SENTENCES)), plain.start(len(SENTENCES))
    for times in range(4):
        weights, below = bound.view(state).log_weights[line], plain.view(before).log_weights[line]
        column = int(bound.view(state).column_of(torch.tensor([[zoe]] * len(SENTENCES)))[line])
        lost = float(below[column] - weights[column])
        assert lost == pytest.approx(0.0 if times < 2 else 6.907755, abs=1e-5)
        assert float(below[EOS] - weights[EOS]) == pytest.approx(4.605170, abs=1e-5)  # Bob was not said
        state = bound.advance(state, torch.full((len(SENTENCES),), zoe))
    bob = torch.full((len(SENTENCES),), table.target.index("Bob"))
    state = bound.advance(state, bob)
    expected = float(plain.view(before).log_weights[line, EOS])
    assert float(bound.view(state).log_weights[line, EOS]) == pytest.approx(expected)


def test_quotas_count_the_places_of_each_string() -> None:
    table = counted_table()
    bound = EvidenceBackground(base("static"), table, UNK, UNK).bind(encode(table, ("12 12 Ann 12 </s>", "dog </s>")))
    assert isinstance(bound, CountedSlots)
    quotas = quotas_of(bound.slots, True)
    assert quotas is not None
    said = {table.target.symbols[w]: int(n) for w, n in zip(bound.slots.words[0], quotas.most[0], strict=True)}
    assert said == {"12": 3, "Ann": 1} and quotas.most[1].sum() == 0


def test_a_batch_without_evidence_has_nothing_to_count() -> None:
    table = counted_table()
    bound = EvidenceBackground(base("static"), table, UNK, UNK).bind(encode(table, ("dog </s>",)))
    assert type(bound) is EvidenceMixture


def test_any_number_of_groups_is_counted() -> None:
    table = evidence_table(replace(PRIOR))
    mixture = EvidenceBackground(base("static"), table, UNK, UNK).bind(encode(table))
    assert isinstance(mixture, EvidenceMixture)
    groups = [[*[Group(("12",), 1000, "must")] * 50, Group(("Ann",), 2**30, "once")], *[[]] * 4]
    bound = grouped(table, mixture, groups)
    state = bound.start(5)
    assert bound.steps_to_end(state).tolist() == [50_001, 1, 1, 1, 1]
    state = bound.advance(state, torch.full((5,), table.target.index("12")))
    assert bound.steps_to_end(state).tolist() == [50_000, 1, 1, 1, 1]


def test_nothing_forbidden_returns() -> None:
    table, bound = make("static")
    state = bound.start(len(SENTENCES))
    assert bool(bound.view(state).log_weights[:, FORBIDDEN].isneginf().all())


def test_an_end_that_shares_its_class_is_refused() -> None:
    table, bound = make("static")
    class_of = CLASS_OF.clone()
    class_of[EOS] = class_of[5]
    below = StaticBackground(class_of, NUM_CLASSES, torch.zeros(len(class_of)))
    with pytest.raises(ValueError, match="</s> must be alone"):
        CountedSlots(below, bound.source)
