"""The background of evidence: equal to its formula over every background; lawful; exact search over V + slots."""

import math

import positions
import pytest
import torch
from dynamic_prior import AfterLastWord
from few_words import (
    CLASS_OF,
    EOS,
    NUM_CLASSES,
    PRIOR,
    RULES,
    SENTENCES,
    SOURCE_WORDS,
    TARGET_WORDS,
    UNK,
    base,
    encode,
    new_table,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from positions import best_members
from torch import Tensor

from fairseq_llrnn.backgrounds.states import select
from fairseq_llrnn.evidence.counted_slots import LOG_END_KEEPS
from fairseq_llrnn.evidence.slots import LOG_UNK_KEEPS, EvidenceMixture
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.output.normalisers import Distribution, ExactRows, LogLinearOutput, SlotScores, class_log_probs


def make(
    kind: str, lines: tuple[str, ...] = SENTENCES, seed: int = 0
) -> tuple[EvidenceBackground, EvidenceMixture, Tensor]:
    table = new_table()
    background = EvidenceBackground(base(kind, seed), table, UNK, UNK)
    source = encode(table, lines)
    bound = background.bind(source)
    assert isinstance(bound, EvidenceMixture)
    return background, bound, source


def strings_of(line: str) -> dict[str, bool]:
    """By hand: the slots' strings of a sentence, and whether no dictionary has them."""
    found: dict[str, bool] = {}
    for word in line.split():
        evidence = RULES.find(word, SOURCE_WORDS)
        for string in evidence.words if evidence else ():
            found.setdefault(string, word not in SOURCE_WORDS and string not in TARGET_WORDS)
    return found


@pytest.mark.parametrize(
    ("line", "is_alias", "unknown"),
    [
        ("dog 7 </s>", False, False),  # both dictionaries have 7
        ("dog 99 </s>", False, False),  # the target's has 99
        ("dog 99 Zoé </s>", False, True),
        ("Zoé 7 </s>", False, True),
        ("dog 31 </s>", False, True),
        ("dog 12 </s>", True, True),  # training reads 12 as if no dictionary had it
    ],
)
def test_unk_and_the_end_lose_weight_to_strings_that_no_dictionary_has(
    line: str, is_alias: bool, unknown: bool
) -> None:
    table = new_table()
    source = encode(table, (line,))
    if is_alias:
        source[0, 1] = table.alias_of(int(source[0, 1]))
    plain_base = base("static").view(torch.zeros(1, 0)).log_weights[0]
    table.once = True
    bound = EvidenceBackground(base("static"), table, UNK, UNK).bind(source)
    weights = bound.view(bound.start(1)).log_weights[0]
    lost = [float(plain_base[word] - weights[word]) for word in (UNK, EOS)]
    assert lost == pytest.approx([-LOG_UNK_KEEPS, -LOG_END_KEEPS] if unknown else [0.0, 0.0], abs=1e-5)


def plain(
    background: EvidenceBackground, source: Tensor, state: Tensor, lines: tuple[str, ...] = SENTENCES
) -> list[dict[str, Tensor]]:
    """b(C; x) by the formula: of every hypothesis, by string. `state`: of the base, one hypothesis per sentence."""
    known = source.masked_fill(source >= len(SOURCE_WORDS), UNK)
    first = background.base.bind(known).view(state).log_weights.expand(len(lines), -1).exp()
    answers = []
    for row, line in zip(first, lines, strict=True):
        weights = dict(zip(TARGET_WORDS, row, strict=True))
        slots = strings_of(line)
        if any(slots.values()):
            weights["<unk>"] = weights["<unk>"] * math.exp(LOG_UNK_KEEPS)
        for string in slots:
            weights[string] = weights.get(string, torch.tensor(0.0)) + RULES.weight / len(slots)
        answers.append(weights)
    return answers


@pytest.mark.parametrize("kind", ["static", "lexical", "dynamic", "automaton"])
def test_weights_masses_and_shares_are_those_of_the_formula(kind: str) -> None:
    background, bound, source = make(kind)
    history = torch.randint(4, len(TARGET_WORDS), (5, 3), generator=torch.Generator().manual_seed(1))
    for state in positions.states(bound, history):
        expected = plain(background, source, bound.below(state))
        columns, found = bound.view(state).columns, bound.view(state).log_weights.exp()
        mass, shares = bound.view(state).class_mass.dense(), bound.view(state).log_shares
        for i, line in enumerate(SENTENCES):
            strings = list(strings_of(line))
            by_class: dict[int, float] = {}
            for column, token in enumerate(columns[i].tolist()):
                string = background.table.target.symbols[token]
                if column >= len(TARGET_WORDS) and (string in TARGET_WORDS or string not in strings):
                    assert torch.isneginf(shares[i, column])
                    continue
                weight = float(expected[i][string])
                assert float(found[i, column]) == pytest.approx(weight, rel=1e-5), (line, string)
                signature = int(bound.view(select(state, torch.tensor([i]))).classes(columns[i, column : column + 1]))
                slot = bound.slots.words[i].tolist().index(token) if string in strings else -1
                assert signature == (NUM_CLASSES + slot if slot >= 0 else int(CLASS_OF[token]))
                by_class[signature] = by_class.get(signature, 0.0) + weight
                share = bound.view(select(state, torch.tensor([i]))).locate(columns[i, column : column + 1])[1]
                assert float(share) == pytest.approx(float(shares[i, column]), abs=1e-5)
                assert math.exp(float(share + mass[i, signature])) == pytest.approx(weight, rel=1e-5), (line, string)
            for signature in range(bound.num_classes):
                assert math.exp(float(mass[i, signature])) == pytest.approx(by_class.get(signature, 0.0), rel=1e-5)


@pytest.mark.parametrize("kind", ["static", "lexical", "dynamic", "automaton"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_search_finds_the_best_of_all_words_and_slots(kind: str, seed: int) -> None:
    _, bound, _ = make(kind, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    history = torch.randint(4, len(TARGET_WORDS), (5, 2), generator=generator)
    state = positions.states(bound, history)[-1]
    scores = torch.randn(5, bound.num_classes, generator=generator, dtype=torch.float64) * 2
    view = bound.view(state)
    classes = class_log_probs(scores, view.class_mass.dense())
    everything = view.expand(classes)
    some = ~view.log_weights.isneginf().all(1)  # after a word that a grammar forbids, there is none
    torch.testing.assert_close(everything.exp().sum(1), some.double())
    k = 4
    values, tokens = Distribution(classes).best_words(view, k)
    torch.testing.assert_close(values, everything.topk(k, dim=1).values)
    for i in range(5):
        of_token = dict(zip(view.columns[i].tolist()[::-1], everything[i].tolist()[::-1], strict=True))
        for value, token in zip(values[i].tolist(), tokens[i].tolist(), strict=True):
            assert of_token[token] == pytest.approx(value)
        sigma, share = view.locate(tokens[i], torch.tensor([i] * k))
        torch.testing.assert_close(share + classes[i][sigma], values[i])


@pytest.mark.parametrize("kind", ["static", "lexical", "dynamic", "automaton"])
def test_training_and_search_agree_and_reordering_commutes(kind: str) -> None:
    _, bound, _ = make(kind)
    strings = bound.slots.words[:, :1].clamp_min(4)
    history = torch.cat([torch.full((5, 1), EOS), strings, torch.randint(4, 14, (5, 2))], dim=1)
    targets = history.roll(-1, 1)
    mass = positions.log_mass(bound, history).expand(5, 4, -1)
    share = positions.log_share(bound, history, targets)
    classes = positions.classes(bound, targets)
    order = torch.tensor([3, 3, 0, 4, 1])
    for t, state in enumerate(positions.states(bound, history)):
        view, first = bound.view(state), bound.view(bound.start(5))
        torch.testing.assert_close(mass[:, t], view.class_mass.dense())
        found, shares = view.locate(targets[:, t])
        torch.testing.assert_close(share[:, t], shares)
        assert torch.equal(classes[:, t], found)
        moved = bound.view(select(state, order))
        torch.testing.assert_close(moved.class_mass.dense(), view.class_mass.dense()[order])
        assert torch.equal(bound.to_input_ids(history, state), bound.to_input_ids(history, first.states))


@pytest.mark.parametrize("remaining", [1, 2, 3, 20])
def test_a_limit_takes_what_cannot_end_from_words_and_slots_alike(remaining: int) -> None:
    background, bound, _ = make("automaton")
    below = background.base.bind()
    assert below.most_steps < 10**6 and background.needs_length_limit
    history = torch.randint(4, 13, (5, 3), generator=torch.Generator().manual_seed(1))
    lost_slots = 0
    for state in positions.states(bound, history):
        whole, limited = bound.view(state), bound.view(state, remaining=remaining)
        torch.testing.assert_close(limited.class_mass.dense(), whole.class_mass.dense())
        shares, columns = whole.log_shares, whole.columns
        expected = shares.clone()
        for column in range(columns.size(1)):
            steps = bound.steps_to_end(bound.advance(state, columns[:, column]))
            out = (steps >= remaining) & (columns[:, column] != EOS)
            expected[:, column] = expected[:, column].masked_fill(out, -math.inf)
            lost_slots += int((out & ~shares[:, column].isneginf()).sum()) if column >= len(TARGET_WORDS) else 0
            one = limited.locate(columns[:, column])[1]
            possible = ~shares[:, column].isneginf()
            torch.testing.assert_close(one[possible], expected[possible, column])
        torch.testing.assert_close(limited.log_shares, expected)
        words = limited.expand(whole.class_mass.dense())
        torch.testing.assert_close(words.isneginf(), expected.isneginf())
        classes = torch.arange(bound.num_classes).expand(5, -1)
        values, tokens = best_members(limited, classes, 3)
        torch.testing.assert_close(limited.best_share, values[:, :, 0])
        for row, column in ((values > -math.inf) & (tokens > -1)).any(2).nonzero().tolist():
            own = limited.locate(tokens[row, column], torch.tensor([row] * 3))[1]
            assert ((own == values[row, column]) | values[row, column].isneginf()).all()
    assert lost_slots > 0 or remaining > 1, "strings outside the vocabulary that lead too far are lost, too"
    assert bound.view(bound.start(5), remaining=10**6).table.view.remaining is None


def test_a_cross_fitted_base_stays_so_in_the_mixture() -> None:
    background, bound, source = make("automaton")
    previous, other, seen = torch.full((5, 3), EOS), AfterLastWord(CLASS_OF, NUM_CLASSES, torch.zeros(14, 14), EOS), []

    def bind(source: Tensor, text: Tensor) -> AfterLastWord:
        seen.append(text)
        return other

    background.base.bind = bind
    held = background.bind(source, previous)
    assert isinstance(held, EvidenceMixture) and held.base is other and torch.equal(held.slots.words, bound.slots.words)
    assert seen[0] is previous


@pytest.mark.parametrize("kind", ["static", "lexical"])
def test_the_loss_over_slots_is_the_definition_in_value_and_gradient(kind: str) -> None:
    """−log of b exp(aᵀφ) over their sum, string by string, and its gradients in h, W, c, the slots' rows and λ."""
    background, bound, _ = make(kind)
    generator = torch.Generator().manual_seed(4)
    output = LogLinearOutput(PRIOR.output.features, CLASS_OF, 3).double()
    torch.nn.init.normal_(output.weight, generator=generator)
    torch.nn.init.normal_(output.bias, generator=generator)
    targets = torch.stack([bound.slots.words[:, 0].clamp_min(5), torch.tensor([9, 10, 9, 6, 2])], dim=1)
    previous = torch.full((5, 2), EOS)
    hidden = torch.randn(5, 2, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    leaves = (hidden, output.weight, output.bias, *background.parameters())

    def fast() -> Tensor:
        scores = hidden @ bound.slots.compose(output.weight).transpose(1, 2)
        scores = scores + bound.slots.compose(output.bias.unsqueeze(1)).squeeze(2).unsqueeze(1)
        mass = positions.log_mass(bound, previous).expand(5, 2, -1).flatten(0, 1)
        slots = SlotScores(scores.flatten(0, 1), mass[:, NUM_CLASSES:])
        classes = positions.classes(bound, targets).flatten()
        share = positions.log_share(bound, previous, targets).flatten()
        found = ExactRows(output).log_prob(hidden.flatten(0, 1), classes, mass[:, :NUM_CLASSES], share, slots)
        return found.view(5, 2)

    def slow() -> Tensor:
        weights = bound.view(bound.start(5)).log_weights  # shape: (B, V + J), by column
        columns = bound.view(bound.start(5)).columns
        dense = torch.from_numpy(PRIOR.output.features.dense()).double()[CLASS_OF]
        rows = []
        for i in range(5):
            features = []
            for column, token in enumerate(columns[i].tolist()):
                own = (bound.slots.words[i] == token).nonzero().flatten().tolist()
                if own:
                    row, s = torch.zeros(dense.size(1), dtype=torch.float64), bound.slots
                    span = slice(int(s.row_starts[s.row[i, own[0]]]), int(s.row_starts[s.row[i, own[0]] + 1]))
                    features.append(row.index_put((s.features[span],), s.values[span].double()))
                else:
                    features.append(dense[min(column, len(dense) - 1)])
            adaptor = hidden[i] @ output.weight.T + output.bias  # shape: (T, F)
            logits = (adaptor @ torch.stack(features).T + weights[i]).log_softmax(-1)
            place = bound.view(bound.start(5)).column_of(targets)[i]
            rows.append(logits.gather(1, place.unsqueeze(1)).squeeze(1))
        return torch.stack(rows)

    torch.testing.assert_close(fast(), slow())
    direction = torch.randn(5, 2, generator=generator, dtype=torch.float64)
    found = torch.autograd.grad((fast() * direction).sum(), leaves, retain_graph=True)
    expected = torch.autograd.grad((slow() * direction).sum(), leaves)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
