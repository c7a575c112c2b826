"""Every source of context classes obeys one law, over every background and over other sources; values and gradients."""

import gc
import itertools
import math
import weakref

import positions
import pytest
import torch
from dynamic_prior import AfterLastWord
from few_words import CLASS_OF, EOS, NUM_CLASSES, SENTENCES, TARGET_WORDS, UNK, base, encode, log_weights, new_table
from positions import best_members
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.background import Background, StaticBackground, View
from fairseq_llrnn.backgrounds.class_weights import row_numbers
from fairseq_llrnn.backgrounds.language_model import ModelBackground
from fairseq_llrnn.backgrounds.states import select
from fairseq_llrnn.evidence.slots import slots_of
from fairseq_llrnn.evidence.translation_slots import EvidenceSlots
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.context_source import NO_WORD, ContextClassSource
from fairseq_llrnn.testing import check_context_classes, class_of, masses_of, weights_of

V, B = len(TARGET_WORDS), len(SENTENCES)
TABLE = new_table()
ZOE, NOBODY = TABLE.target.index("Zoé"), TABLE.target.index("Nobody")


class Singled(ContextClassSource):
    """Singles out words that exist, one more of them after every token: whole classes, strings below, or nobody."""

    changes = True
    WORDS = (5, 8, ZOE, NOBODY, UNK, 7, 4, 11)

    def __init__(self) -> None:
        self.rows, self.width = B, 2

    def start(self, n: int) -> Tensor:
        return torch.arange(n)

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        self.width = max(self.width, min(len(self.WORDS), 2 + int((contexts // B).max()) + 1))
        return contexts + B

    def words(self, contexts: Tensor) -> Tensor:
        many = (2 + contexts // B - contexts % B).clamp_min(0)  # the later the sentence, the fewer of them
        words = torch.tensor(self.WORDS[: self.width]).expand(*contexts.shape, -1)
        return words.masked_fill(torch.arange(self.width) >= many.unsqueeze(-1), NO_WORD)


class Terms(Singled):
    """Brings strings with mass, beside words that exist; another <unk> in every second sentence."""

    changes, unk = False, UNK
    WORDS = (ZOE, 5, 9, NOBODY)  # type: ignore[assignment]
    advance = ContextClassSource.advance

    def log_added(self, contexts: Tensor) -> Tensor:
        words = self.words(contexts)
        return torch.full_like(words, -2.0, dtype=torch.float64).masked_fill(words == NO_WORD, -math.inf)

    def log_unk_factor(self, contexts: Tensor) -> Tensor:
        return -0.7 * (contexts % 2).double()

    def unreadable(self, contexts: Tensor) -> Tensor:
        return self.words(contexts) == ZOE


class Restored(Terms):
    """The words weigh more than in the background below."""

    def log_weights_below(self, below: View, contexts: Tensor, words: Tensor) -> Tensor:
        return below.weights_at(words.flatten(), row_numbers(words).flatten()).view_as(words) + 0.3


COMBINED = ("automaton times lexical", "automaton plus lexical plus cache")
SOURCES = ("slots", "singled out", "terms", "singled out over slots", "singled out over terms", "terms over slots")


def make(sources: str, below: Background) -> ContextClasses:
    source = encode(TABLE)
    made = below.bind(source.masked_fill(source >= TABLE.source.num_words, UNK))
    for name in reversed(sources.split(" over ")):
        slots = EvidenceSlots(slots_of(TABLE, source), UNK, 0.25)
        made = ContextClasses(made, slots if name == "slots" else Terms() if name == "terms" else Singled())
    assert isinstance(made, ContextClasses)
    return made


def some_history(seed: int) -> Tensor:
    history = torch.randint(4, V, (B, 3), generator=torch.Generator().manual_seed(seed))
    history[:, 0] = EOS
    return history


# What lies below a source over another one is that source: of all backgrounds, one says that nothing is lost between.
OVER = [
    (sources, kind) for sources in SOURCES for kind in ("static", "lexical", "automaton", "dynamic", *COMBINED)
    if " over " not in sources or kind == "dynamic" or (sources, kind) == ("terms over slots", COMBINED[1])
]  # fmt: skip
ALL_IN_THREE = ("slots", "singled out", "terms over slots")


@pytest.mark.parametrize(("sources", "kind"), OVER)
def test_every_source_obeys_the_law_over_every_background(sources: str, kind: str) -> None:
    check_context_classes(make(sources, base(kind)), some_history(0))


@pytest.mark.parametrize("kind", ["static", "dynamic", COMBINED[1]])
def test_a_source_may_change_the_weights_below(kind: str) -> None:
    check_context_classes(ContextClasses(base(kind).bind(encode(TABLE)), Restored()), some_history(0))


class NextWords(nn.Module):
    """A model that reads all words so far."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.table = nn.Embedding(V, V)

    def forward(self, previous: Tensor, last: bool) -> Tensor:
        log_probs = self.table(previous).cumsum(1).log_softmax(-1)
        return log_probs[:, -1:] if last else log_probs


@pytest.mark.parametrize("sources", ALL_IN_THREE)
def test_special_symbols_may_share_classes_with_words(sources: str) -> None:
    class_of = CLASS_OF.clone()
    class_of[:2] = class_of[[5, 8]]  # <s> and <pad>; 5 and 8 leave
    weights = torch.rand(V, generator=torch.Generator().manual_seed(1), dtype=torch.float64).log()
    check_context_classes(make(sources, StaticBackground(class_of, NUM_CLASSES, weights)), some_history(0))


@pytest.mark.parametrize("sources", ALL_IN_THREE)
def test_states_below_may_get_wider_with_every_word(sources: str) -> None:
    model = ModelBackground(CLASS_OF, NUM_CLASSES, log_weights(), EOS, NextWords())
    check_context_classes(make(sources, model), some_history(0))


@pytest.mark.parametrize("sources", SOURCES)
def test_masses_and_shares_are_the_definition_in_value_and_gradient(sources: str) -> None:
    table = torch.randn(V, V, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    table[:, :2] = -math.inf
    table.requires_grad_()
    bound = make(sources, AfterLastWord(CLASS_OF, NUM_CLASSES, table, EOS))
    for state in positions.states(bound, some_history(5)):
        weights = weights_of(bound.view(state))
        slow, fast = masses_of(bound.view(state), weights), bound.view(state).class_mass.dense()
        real = ~slow.isneginf()
        tokens = torch.tensor([4, 5, 8, 9, UNK])  # one of each sentence
        of_tokens = [class_of(bound.view(state), row, token) for row, token in enumerate(tokens.tolist())]
        slow_shares = [weights[row][int(token)] - slow[row, of_tokens[row]] for row, token in enumerate(tokens)]
        fast_share = bound.view(state).locate(tokens)[1]
        torch.testing.assert_close(fast_share, torch.stack(slow_shares))
        direction = torch.linspace(0.5, 1.5, int(real.sum()), dtype=torch.float64)
        (expected,) = torch.autograd.grad((slow[real] * direction).sum() + torch.stack(slow_shares).sum(), table)
        (found,) = torch.autograd.grad((fast[real] * direction).sum() + fast_share.sum(), table)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("sources", "kind"), [some for some in OVER if some[1] in ("static", "dynamic", COMBINED[1])])
def test_words_taken_out_leave_the_sum_of_the_others(sources: str, kind: str) -> None:
    bound = make(sources, base(kind))
    with torch.no_grad():
        for state in positions.states(bound, some_history(1)):
            words = torch.tensor([5, 4, UNK, 9, 7]).expand(B, -1)
            taken = torch.tensor([True, False, False, True, True]).expand(B, -1)
            found = bound.view(state).mass_without(words, taken).exp()
            for row, weights in enumerate(weights_of(bound.view(state))):
                for column, word in enumerate(words[row].tolist()):
                    own = class_of(bound.view(state), row, word)
                    stay = [w.exp() for x, w in weights.items() if x not in (5, 9, 7)
                            and class_of(bound.view(state), row, x) == own]  # fmt: skip
                    assert float(found[row, column]) == pytest.approx(float(sum(stay)), abs=1e-6)


def test_a_network_reads_strings_and_unreadable_words_as_unk() -> None:
    slots = make("slots", base("static"))
    ann = TARGET_WORDS.index("Ann")
    tokens = torch.tensor([[ZOE, ann, NOBODY]]).expand(B, -1)
    for bound in (slots, make("singled out over slots", base("static"))):
        view = bound.view(bound.start(B))
        assert bound.to_input_ids(tokens, view.states).tolist() == [[UNK, ann, UNK]] * B
        assert view.column_of(tokens)[1].tolist()[1:] == [ann, UNK], "what is nowhere offered is <unk>"
        assert view.column_of(tokens)[1, 0] >= V, "a string has its own column where it is offered"
        known = bound.in_vocabulary(tokens, view.states)
        assert known.tolist()[1] == [True, True, False] and not known[0, 0]
    terms = make("terms", base("static"))
    read = terms.to_input_ids(torch.tensor([[ZOE], [5], [9], [9], [9]]), terms.start(B))
    assert read[:2].tolist() == [[UNK], [5]]


@pytest.mark.parametrize(("sources", "kind"), [("slots", "static"), ("slots", "automaton"), ("terms", "lexical")])
def test_nothing_of_a_batch_outlives_it(sources: str, kind: str) -> None:
    """No reference from a background's module, and no cycle that only the garbage collector ends."""
    module = base(kind)
    bound, previous = make(sources, module), some_history(4)
    view = bound.view_of(previous)
    found = [view.class_mass, view.locate(previous.flatten()), view.best_share]
    limited = bound.view(bound.start(B), remaining=2)
    found.append(best_members(limited, torch.zeros(B, 1, dtype=torch.long), 2))
    objects = [weakref.ref(each) for each in (bound, view, limited, view.table)]
    gc.disable()
    try:
        del bound, limited, view, found
        assert [each() for each in objects] == [None] * len(objects)
    finally:
        gc.enable()


def class_numbers(bound: ContextClasses, state: Tensor) -> list[dict[int, int]]:
    """The class of each word with weight, of each state."""
    return [
        {word: class_of(bound.view(state), row, word) for word, weight in weights.items() if not weight.isneginf()}
        for row, weights in enumerate(weights_of(bound.view(state)))
    ]


LAWS_OVER = [pair for pair in OVER if pair[1] in ("static", "automaton", "dynamic", COMBINED[1])]


@pytest.mark.parametrize(("sources", "kind"), LAWS_OVER)
def test_sums_of_shares_and_single_members(sources: str, kind: str) -> None:
    bound = make(sources, base(kind))
    with torch.no_grad():
        for state in positions.states(bound, some_history(2)):
            count, total = (values.expand(B, -1) for values in bound.view(state).share_sums())
            classes = torch.arange(bound.num_classes).expand(B, -1)
            only, weights = bound.view(state).only_member(classes), weights_of(bound.view(state))
            masses, of_words = masses_of(bound.view(state), weights), class_numbers(bound, state)
            for row, sigma in itertools.product(range(B), range(bound.num_classes)):
                members = [word for word, number in of_words[row].items() if number == sigma]
                shares = [float(weights[row][word] - masses[row, sigma]) for word in members]
                is_context = sigma >= NUM_CLASSES
                if members or not is_context:
                    assert float(count[row, sigma]) == len(members)
                    assert float(total[row, sigma]) == pytest.approx(sum(shares), abs=1e-6)
                if members and (is_context or int(only[row, sigma]) >= 0):
                    assert members == [int(only[row, sigma])]


@pytest.mark.parametrize(("sources", "kind"), LAWS_OVER)
def test_log_probabilities_of_words(sources: str, kind: str) -> None:
    """p(x) = p(σ) · share, in the column of each word, for states in another order."""
    bound = make(sources, base(kind))
    with torch.no_grad():
        for state in positions.states(bound, some_history(3)):
            order = torch.tensor([3, 0, 4, 4, 1])
            rows, generator = select(state, order), torch.Generator().manual_seed(1)
            log_probs = torch.randn(B, bound.num_classes, generator=generator, dtype=torch.float64).log_softmax(1)
            for view in (bound.view(rows), bound.view(state).select(order)):
                found, columns = view.expand(log_probs), view.columns.expand(B, -1)
                assert torch.equal(found, bound.view(rows).expand(log_probs))
            by_row = weights_of(bound.view(state))
            weights = [by_row[row] for row in order.tolist()]
            masses, of_words = masses_of(bound.view(state), by_row)[order], class_numbers(bound, state)
            for row, original in enumerate(order.tolist()):
                expected = {
                    word: log_probs[row, sigma] + weights[row][word] - masses[row, sigma]
                    for word, sigma in of_words[original].items()
                }
                for column, word in enumerate(columns[row].tolist()):
                    value = found[row, column]
                    if value.isneginf():
                        continue
                    torch.testing.assert_close(value, expected.pop(word))
                assert not expected, "each possible word has a column"


@pytest.mark.parametrize("kind", ["dynamic", "automaton", COMBINED[1]])
def test_states_are_those_of_any_equal_layer(kind: str) -> None:
    """Also of one that has made no states of its own."""
    bound = make("slots", base(kind))
    with torch.no_grad():
        for state in positions.states(bound, some_history(6)):
            other = make("slots", base(kind)).view(state)
            torch.testing.assert_close(other.class_mass.dense(), bound.view(state).class_mass.dense())


@pytest.mark.parametrize("remaining", [1, 2, 3])
@pytest.mark.parametrize("sources", [name for name in SOURCES if not name.endswith("over terms")])
def test_a_limit_leaves_words_out_from_which_no_end_is_in_reach(sources: str, remaining: int) -> None:
    bound = make(sources, base("automaton"))
    assert bound.has_dead_ends
    with torch.no_grad():
        for state in positions.states(bound, some_history(0))[:2]:
            whole, limited = bound.view(state), bound.view(state, remaining=remaining)
            assert torch.equal(limited.class_mass.dense(), whole.class_mass.dense()), "masses stay"
            shares, columns = whole.log_shares, whole.columns.expand(B, -1)
            found, classes = limited.log_shares, whole.column_classes.expand(B, -1)
            best, words = best_members(limited, torch.arange(bound.num_classes).expand(B, -1), 2)
            every = limited.expand(torch.zeros(B, bound.num_classes, dtype=torch.float64))
            torch.testing.assert_close(limited.best_share.expand(B, -1), best[:, :, 0])
            assert not words[best.isneginf()].any(), "no word is token 0"
            for row, column in itertools.product(range(B), range(columns.size(1))):
                word, share = columns[row, column], shares[row, column]
                if share.isneginf():
                    assert found[row, column].isneginf()
                    continue
                after = bound.advance(select(state, torch.tensor([row])), word.view(1))
                is_near = int(word) == EOS or int(bound.steps_to_end(after)) < remaining
                expected = share if is_near else torch.tensor(-math.inf, dtype=share.dtype)
                torch.testing.assert_close(found[row, column], expected)
                torch.testing.assert_close(every[row, column], expected)
                torch.testing.assert_close(limited.locate(word.expand(B))[1][row], expected)
                members = words[row, classes[row, column]][~best[row, classes[row, column]].isneginf()].tolist()
                assert is_near or int(word) not in members
