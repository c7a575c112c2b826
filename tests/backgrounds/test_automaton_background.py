"""The background of an automaton: laws, brute force, limits, extremes of weight, precision."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import positions
import pytest
import torch
from automata import WORDS, from_states, log_weight_by_hand, ngram_like, random_automaton, random_root
from hypothesis import given, settings
from hypothesis import strategies as st
from positions import best_members

from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton
from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.automata.trimming import NO_END, steps_to_end
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground, BoundAutomaton
from fairseq_llrnn.backgrounds.background import BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.class_weights import class_log_sums, row_numbers
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.ngrams.folds import folds_of
from fairseq_llrnn.ngrams.ngrams import Sentences
from fairseq_llrnn.testing import check_background

CLASSES = 6
Make = Callable[[int], tuple[Automaton, np.ndarray]]
MAKERS = pytest.mark.parametrize("make", [random_automaton, ngram_like])


def classes(seed: int, num_words: int) -> torch.Tensor:
    """Class 5 has no member, some others one."""
    return torch.randint(0, CLASSES - 1, (num_words,), generator=torch.Generator().manual_seed(seed))


def background_of(
    automaton: Automaton, root: np.ndarray, seed: int = 0, dtype: torch.dtype = torch.float64
) -> BoundAutomaton:
    class_of = classes(seed, automaton.num_symbols)
    return BoundAutomaton(AutomatonBackground(class_of, CLASSES, torch.from_numpy(root).to(dtype), automaton))


def states_of(automaton: Automaton) -> range:
    """Those of a background: where some state forbids what it has no arc for, one more, in which all is forbidden."""
    return range(automaton.num_states + int((automaton.chain_end == NOTHING).any()))


def all_states(background: BoundAutomaton) -> torch.Tensor:
    return torch.arange(len(background.tables.chain)).unsqueeze(1)


def weights_by_hand(automaton: Automaton, root: np.ndarray) -> torch.Tensor:
    """log b of every state and word, that of no weight the last one: (Q, V)."""
    pairs = itertools.product(states_of(automaton), range(automaton.num_symbols))
    flat = [log_weight_by_hand(automaton, root, q, x)[0] for q, x in pairs]
    return torch.tensor(flat, dtype=torch.float64).view(len(states_of(automaton)), -1)


@MAKERS
@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_obeys_the_laws(make: Make, seed: int) -> None:
    automaton, root = make(seed)
    for dtype in (torch.float64, torch.float32):
        check_background(background_of(automaton, root, seed, dtype).tables, seed=seed)


@MAKERS
@pytest.mark.parametrize("seed", range(8))
def test_weights_and_steps_are_those_of_the_definition(make: Make, seed: int) -> None:
    automaton, root = make(seed)
    background = background_of(automaton, root, seed)
    expected = weights_by_hand(automaton, root)
    torch.testing.assert_close(background.view(all_states(background)).log_weights, expected)
    mass = class_log_sums(expected, background.class_of, CLASSES)
    torch.testing.assert_close(background.view(all_states(background)).class_mass.dense(), mass)
    for state, word in itertools.product(states_of(automaton), range(automaton.num_symbols)):
        weight, after = log_weight_by_hand(automaton, root, state, word)
        moved = background.advance(torch.tensor([[state]]), torch.tensor([word]))
        assert moved.tolist() == [[after]]
        share = background.view(torch.tensor([[state]])).locate(torch.tensor([word]))[1].item()
        if math.isinf(weight):
            assert share == -math.inf
        else:
            assert share == pytest.approx(weight - mass[state, background.class_of[word]].item(), abs=1e-9)


@MAKERS
@pytest.mark.parametrize("seed", range(8))
def test_members_are_those_of_the_slow_defaults(make: Make, seed: int) -> None:
    automaton, root = make(seed)
    background = background_of(automaton, root, seed)
    state = all_states(background)
    generator = torch.Generator().manual_seed(seed)
    for remaining in (None, 1, 2, 3):
        limited = background.view(state, remaining=remaining)
        torch.testing.assert_close(limited.best_share, limited.best_of_all_words())
        asked = torch.randint(0, CLASSES, (len(state), 3), generator=generator)
        for k in (1, 2, 20):
            values, tokens = best_members(limited, asked, k)
            expected, _ = View.best(limited, asked.flatten(), k, row_numbers(asked).flatten())
            torch.testing.assert_close(values.flatten(0, 1), expected)
            each = limited.log_shares.unsqueeze(1).expand(-1, 3, -1).gather(2, tokens)
            torch.testing.assert_close(torch.where(values.isneginf(), values, each), values)
    words = torch.stack([torch.randperm(automaton.num_symbols, generator=generator)[:5] for _ in state])
    for taken in (torch.rand(words.shape, generator=generator) < 0.5, torch.ones_like(words, dtype=torch.bool)):
        view = background.view(state)
        torch.testing.assert_close(view.mass_without(words, taken), View.mass_without(view, words, taken))


@pytest.mark.parametrize("seed", range(6))
def test_a_memory_gives_the_states_that_steps_give(seed: int) -> None:
    automaton, root = ngram_like(seed)
    background = background_of(automaton, root, seed)
    generator = torch.Generator().manual_seed(seed)
    previous = torch.randint(1, automaton.num_symbols, (7, 12), generator=generator)  # with </s> and <pad> inside
    assert background.tables.memory == 2
    expected = list(BoundBackground.flat_states(background, previous).unflatten(0, previous.shape).unbind(1))
    assert torch.equal(torch.stack(expected), torch.stack(positions.states(background, previous)))
    background.tables.memory = None
    assert torch.equal(torch.stack(expected), torch.stack(positions.states(background, previous)))


@pytest.mark.parametrize("seed", range(6))
def test_distance_to_the_end_by_search(seed: int) -> None:
    automaton, root = random_automaton(seed)
    steps = [NO_END] * automaton.num_states
    step = [[log_weight_by_hand(automaton, root, q, x) for x in range(WORDS)] for q in range(automaton.num_states)]
    for _ in range(automaton.num_states):
        for q, row in enumerate(step):
            possible = [(x, after) for x, (weight, after) in enumerate(row) if weight > -math.inf]
            lengths = [1 if x == END else steps[after] + 1 for x, after in possible]
            steps[q] = min([*lengths, NO_END])
    assert steps_to_end(automaton, root).tolist() == steps
    background = background_of(automaton, root)
    assert background.steps_to_end(all_states(background)).tolist() == [*steps, NO_END]


@pytest.mark.parametrize("seed", range(4))
def test_a_limit_leaves_what_can_end_in_time(seed: int) -> None:
    """Brute force over all strings: a word stays if and only if some string within the limit begins with it."""
    automaton, root = random_automaton(seed, num_words=6, num_states=6)
    background = background_of(automaton, root)

    def can_end(state: int, remaining: int) -> bool:
        return remaining > 0 and any(going_on(state, x, remaining) for x in range(6))

    def going_on(state: int, word: int, remaining: int) -> bool:
        weight, after = log_weight_by_hand(automaton, root, state, word)
        return not math.isinf(weight) and (word == END or can_end(after, remaining - 1))

    for remaining in range(1, 5):
        shares = background.view(all_states(background), remaining=remaining).log_shares
        expected = [[going_on(q, x, remaining) for x in range(6)] for q in states_of(automaton)]
        assert (~shares.isneginf()).tolist() == expected


@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_folds_obey_the_laws(seed: int) -> None:
    automaton, root = random_automaton(seed, blocks=3)
    automaton.check(root)
    background = background_of(automaton, root, seed)
    check_background(background.tables, seed=seed)
    assert len(background.tables.chain) == len(states_of(automaton.in_use))
    assert len(background.tables._all_models.chain) == len(states_of(automaton))
    # what is not cross-fitted is as if there were no folds
    alone = background_of(automaton.in_use, root, seed)
    assert torch.equal(background.view(all_states(alone)).log_shares, alone.view(all_states(alone)).log_shares)


def test_cross_fitted_sentences_begin_in_their_folds() -> None:
    """Each sentence of a row is read from the start of its fold, by its own words alone."""
    automaton, root = random_automaton(3, blocks=3)
    background = background_of(automaton, root)
    generator = torch.Generator().manual_seed(1)
    previous = torch.randint(2, WORDS, (20, 12), generator=generator)
    previous[:, 0] = END
    previous[::2, 6] = END
    cross_fitted = background.tables.bind(text=previous)
    found = torch.stack(positions.states(cross_fitted, previous), dim=1).squeeze(2)
    assert torch.equal(cross_fitted.start(20).squeeze(1), found[:, 0])
    used = set()
    for row, words in enumerate(previous.tolist()):
        cuts = [i for i, x in enumerate(words) if x == END]
        for begin, end in zip(cuts, [*cuts[1:], len(words)], strict=True):
            sentence = words[begin + 1 : end]
            fold = int(folds_of(Sentences.of([sentence]), 2)[0])
            used.add(fold)
            state = int(automaton.starts[1 + fold])
            for place, word in enumerate([*sentence, None]):
                assert found[row, begin + place] == state
                if word is not None:
                    state = log_weight_by_hand(automaton, root, state, word)[1]
    assert used == {0, 1}


def test_cross_fitted_states_are_the_same_with_a_memory() -> None:
    one, root = ngram_like(2)
    # the same model in three blocks, as folds have it
    many = Automaton(
        one.num_symbols,
        np.array([one.starts[0] + k * one.num_states for k in range(3)]),
        np.concatenate([[0], np.tile(np.diff(one.offsets), 3).cumsum()]),
        np.tile(one.tokens, 3),
        np.concatenate([np.where(one.tokens == END, one.starts[0], one.nexts + k * one.num_states) for k in range(3)]),
        np.tile(one.log_weights, 3),
        np.concatenate([np.where(one.fail >= 0, one.fail + k * one.num_states, one.fail) for k in range(3)]),
        np.tile(one.back_off, 3),
        one.root_next,
        one.memory,
    )
    many.check(root)
    background, single = background_of(many, root), background_of(one, root)
    previous = torch.randint(2, one.num_symbols, (9, 10), generator=torch.Generator().manual_seed(0))
    cross_fitted = background.tables.bind(text=previous)
    states = cross_fitted.flat_states(previous)
    assert torch.equal(states % one.num_states, single.flat_states(previous))
    assert (states >= one.num_states).all()
    cross_fitted.tables.memory = None
    assert torch.equal(states, cross_fitted.flat_states(previous))
    assert torch.equal(single.tables.bind(text=previous).start(9), single.start(9))


@pytest.mark.parametrize(
    ("name", "text", "shortest"),
    [
        ("a.grammar", '%depth 5\nS -> "w4" S "w5" | "w6"', 2),
        ("b.grammar", '%depth 6\nS -> "w4" S "w5" S [0.5] | "w6" [0.25] | "w7" S [0.25]', 2),
        ("c.regex", "(w4 w5{3} | . w7)+ [^w4 w5]", 4),
        ("d.txt", "0 1 w4 0.5\n1 0 w5 0.5\n1 1 w6 1\n1 2 w7\n2 0.1\n", 3),
        ("e.txt", "weights probabilities\n0 1 w4 0.5\nfail 0 root 0.1\nfail 1 0 0.5\n1 0 w5\n", 1),
    ],
)
def test_automata_from_files_and_searches_that_end(tmp_path: Path, name: str, text: str, shortest: int) -> None:
    """The laws; and whoever writes words that are left by `within` ends with a whole string, at random."""
    words = WordList((*SPECIALS, *(f"w{i}" for i in range(4, WORDS))), np.array([0] * 4 + [5] * (WORDS - 4)))
    (tmp_path / name).write_text(text, encoding="utf-8")
    root = random_root(0)
    background = background_of(read_automaton(tmp_path / name, words, log_weights=root).automaton, root)
    check_background(background.tables)
    generator = torch.Generator().manual_seed(0)
    assert background.steps_to_end(background.start(1)).tolist() == [shortest]
    state, done = background.start(50), torch.zeros(50, dtype=torch.bool)
    for remaining in range(7, 0, -1):
        limited = background.view(state, remaining=remaining)
        log_probs = limited.log_shares + limited.class_mass.dense()[:, background.class_of]
        log_probs[done, END] = 0.0  # whatever: these have ended
        word = torch.multinomial(log_probs.softmax(1), 1, generator=generator).squeeze(1)
        assert not log_probs.gather(1, word.unsqueeze(1)).isneginf().any()
        done |= word == END
        state = background.advance(state, word)
    assert done.all()


@pytest.mark.parametrize("remaining", [1, 2, 3])
def test_a_limit_takes_nothing_from_masses(tmp_path: Path, remaining: int) -> None:
    """Words that no string within the limit goes on with have no share, but stay in the mass of their class."""
    words = WordList((*SPECIALS, *(f"w{i}" for i in range(4, WORDS))), np.array([0] * 4 + [5] * (WORDS - 4)))
    text = "weights probabilities\n0 1 w4 0.5\n1 0 w5 0.001\n1 1 w6 0.001\n1 2 w7 0.9\n2 0.1\n"
    (tmp_path / "d.txt").write_text(text, encoding="utf-8")
    root = random_root(0)
    automaton = read_automaton(tmp_path / "d.txt", words, log_weights=root).automaton
    one_class = torch.zeros(WORDS, dtype=torch.long)
    background = BoundAutomaton(AutomatonBackground(one_class, 1, torch.from_numpy(root), automaton))
    states, every = all_states(background), torch.arange(WORDS)
    weights = background.view(states).log_weights
    asked = every.expand(len(states), -1)
    for stays in every:  # a light word, of a class that has a heavy one
        rest = background.view(states, remaining=remaining).mass_without(asked, asked != stays)
        torch.testing.assert_close(rest, weights[:, [stays]].expand(-1, WORDS))


def test_a_limit_far_away_costs_nothing() -> None:
    automaton, root = ngram_like(0)
    background = background_of(automaton, root)
    assert background.view(background.start(1), remaining=2).remaining is None
    assert background.view(background.start(1), remaining=1).remaining == 1


def test_nothing_is_left_of_a_class_that_arcs_nearly_empty() -> None:
    """Of a class with nearly all of its weight on an arc, what is left keeps its digits."""
    root = np.array([-np.inf, -np.inf, 0.0, 0.0, -40.0, -np.inf])
    class_of = torch.tensor([0, 0, 1, 2, 2, 2])
    states = [{3: (-60.0, 0)}, {3: (-90.0, 0)}]
    automaton = from_states(states, 6, fail=[ROOT, 0], back_off=[-1.0, -2.0], root_next=[-1, -1, 0, 0, 0, -1])
    automaton.check(root)
    background = BoundAutomaton(AutomatonBackground(class_of, 3, torch.from_numpy(root), automaton))
    mass = background.view(all_states(background)).class_mass.dense()[:, 2]
    # exp(−60) + exp(−1 − 40), and exp(−90) + exp(−3 − 40)
    torch.testing.assert_close(mass, torch.tensor([-41 + 5.6e-9, -43.0], dtype=torch.float64), rtol=0, atol=1e-9)


def test_extreme_weights_neither_overflow_nor_vanish() -> None:
    root = np.array([-np.inf, -np.inf, -800.0, 700.0, -700.0, 5.0])
    states = [{3: (-800.0, 0), 4: (900.0, 0)}, {2: (0.0, 0), 3: (1000.0, 0), 4: (1000.0, 0), 5: (-1000.0, 0)}]
    automaton = from_states(states, 6, fail=[ROOT, 0], back_off=[500.0, -500.0], root_next=[-1, -1, 0, 0, 0, 0])
    class_of = torch.tensor([0, 0, 0, 1, 1, 1])
    background = BoundAutomaton(AutomatonBackground(class_of, 2, torch.from_numpy(root), automaton))
    expected = class_log_sums(weights_by_hand(automaton, root), class_of, 2)
    torch.testing.assert_close(background.view(all_states(background)).class_mass.dense(), expected)
    assert torch.isfinite(expected).all()


def test_an_automaton_that_only_fails_is_its_root() -> None:
    _, root = random_automaton(1)
    after = [-1, -1, *[0] * (WORDS - 2)]
    automaton = from_states([{}], WORDS, fail=[ROOT], root_next=after, memory=0)
    background = background_of(automaton, root)
    static = StaticBackground(background.class_of, CLASSES, torch.from_numpy(root))
    state = background.start(3)
    previous = torch.tensor([[2, 4, 2, 5]])
    assert torch.equal(background.view(state).class_mass.dense(), static.view(state).class_mass.dense().expand(3, -1))
    assert torch.equal(background.view(state).best_share, static.view(state).best_share.expand(3, -1))
    torch.testing.assert_close(background.view(state).log_shares, static.view(state).log_shares.expand(3, -1))
    assert torch.equal(background.flat_states(previous), torch.zeros(4, 1, dtype=torch.long))


def test_half_precision_does_not_touch_the_tables() -> None:
    automaton, root = ngram_like(3)
    background = background_of(automaton, root, dtype=torch.float32)
    before = background.view(all_states(background))
    mass, best = before.class_mass.dense(), before.best_share
    background.tables.half()
    assert background.tables.added.dtype == background.root.class_log_mass.dtype == torch.float64
    assert torch.equal(background.view(all_states(background)).class_mass.dense(), mass)
    assert torch.equal(background.view(all_states(background)).best_share, best)
