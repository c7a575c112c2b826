"""The automaton's arrays: what they mean, what is refused, failures written out as arcs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from automata import WORDS, from_states, log_weight_by_hand, random_automaton

from fairseq_llrnn.automata.automaton import NOTHING, ROOT, Automaton
from fairseq_llrnn.automata.trimming import flatten

# 0 and 1 are never predicted, 2 is </s>
TWO = from_states([{3: (-0.5, 1), 2: (-1.0, 0)}, {4: (0.0, 0)}], 5)


def test_arrays_of_a_small_one() -> None:
    assert TWO.tokens.tolist() == [2, 3, 4] and TWO.offsets.tolist() == [0, 2, 3]
    assert TWO.row(0) == {2: (-1.0, 0), 3: (-0.5, 1)}
    assert TWO.depth.tolist() == [1, 1] and TWO.chain_end.tolist() == [NOTHING, NOTHING]
    TWO.check(np.array([-np.inf, -np.inf, 0, 0, 0]))


def test_from_arcs_sorts() -> None:
    order = np.array([2, 0, 1])
    again = Automaton.from_arcs(
        5, 2, 0, TWO.arc_states[order], TWO.tokens[order], TWO.nexts[order], TWO.log_weights[order]
    )
    for name in ("offsets", "tokens", "nexts", "log_weights", "fail", "back_off", "root_next"):
        np.testing.assert_array_equal(getattr(again, name), getattr(TWO, name))


def test_depth_counts_failures() -> None:
    chain = from_states([{}, {}, {}], 5, fail=[1, 2, ROOT], root_next=[-1, -1, 0, 0, 0])
    assert chain.depth.tolist() == [3, 2, 1]
    assert chain.chain_end.tolist() == [ROOT] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"starts": np.array([], dtype=np.int64)}, "no state to start in"),
        ({"num_symbols": 2}, "has 2 symbols and 2 states, too few"),
        ({"tokens": np.array([2, 3, 9])}, "lie outside its states or its symbols"),
        ({"offsets": np.array([0, 2, 2])}, "lie outside its states or its symbols"),
        ({"offsets": np.array([0, 3])}, "lie outside its states or its symbols"),
        ({"nexts": np.array([0, 1])}, "other numbers of tokens, next states and weights"),
        ({"back_off": np.zeros(3)}, "another size than its states or symbols"),
        ({"starts": np.array([2])}, r"starts name a state outside 0 … 1"),
        ({"nexts": np.array([0, 1, -1])}, r"nexts name a state outside 0 … 1"),
        ({"fail": np.array([NOTHING, -3])}, r"fail name a state outside 0 … 1"),
        ({"starts": np.array([0, 0])}, "2 states are no blocks for each of 2 starts"),
        ({"starts": np.array([0, 1, 1])}, "2 states are no blocks for each of 3 starts"),
        ({"starts": np.array([0, 1]), "root_next": np.array([-1, -1, 0, 1, 0])}, r"root_next name a state outside 0 …"),
        ({"starts": np.array([0, 1])}, "an arc or a failure from one of its models into another"),
        ({"root_next": np.array([-1, -1, 0, 2, 0])}, r"root_next name a state outside 0 … 1"),
        ({"log_weights": np.array([0.0, np.nan, 0.0])}, "a weight that is not finite"),
        ({"back_off": np.array([np.inf, 0.0])}, "a weight that is not finite"),
        ({"log_weights": np.array([0.0, 2e6, 0.0])}, "a weight whose logarithm is above 1,000,000"),
        ({"back_off": np.array([-2e6, 0.0])}, "a weight whose logarithm is above 1,000,000"),
        ({"tokens": np.array([3, 3, 4])}, "tokens do not rise"),
        ({"tokens": np.array([3, 2, 4])}, "tokens do not rise"),
        ({"fail": np.array([1, 0])}, "chains of at most 64 failures, found a longer one from state 0"),
        ({"fail": np.array([1, NOTHING])}, "ends in nothing and is not written out"),
        ({"back_off": np.array([-1.0, 0.0])}, "a weight for failing in a state that cannot fail"),
        ({"memory": 65}, "a memory of 65 words, not of 0 to 64"),
        ({"memory": -1}, "a memory of -1 words, not of 0 to 64"),
        ({"memory": 1}, "a memory of 1 words, and has states that forbid words"),
        ({"nexts": np.array([1, 1, 0])}, "an arc on </s> that does not lead to the start of the next sentence"),
        ({"tokens": np.array([2, 3, 4], dtype=np.int32)}, "tokens are int32 of shape"),
        ({"log_weights": np.zeros(3, dtype=np.float32)}, "log_weights are float32 of shape"),
        ({"fail": np.zeros((2, 1), dtype=np.int64)}, r"fail are int64 of shape \(2, 1\)"),
    ],
)
def test_what_is_no_automaton_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TWO, **changes).check()


def test_what_does_not_fit_its_root_is_refused() -> None:
    root = np.zeros(5)
    with pytest.raises(ValueError, match="has 5 symbols, the root"):
        TWO.check(np.zeros(4))
    root[4] = -np.inf
    with pytest.raises(ValueError, match="an arc on token 4 in state 1, which the static background forbids"):
        TWO.check(root)
    rooted = replace(TWO, fail=np.array([ROOT, NOTHING]))
    with pytest.raises(ValueError, match="no state for what follows token 0 when the root gave it"):
        rooted.check(np.zeros(5))
    with pytest.raises(ValueError, match="</s> from the root that does not lead to the start"):
        replace(rooted, root_next=np.array([0, 0, 1, 0, 0])).check(np.zeros(5))


def test_the_model_in_use_is_the_first_block() -> None:
    many, _ = random_automaton(5, blocks=3)
    used = many.in_use
    used.check()
    assert used.num_states == 3 and used.starts.tolist() == [0] and used.in_use is used
    assert [used.row(q) for q in range(3)] == [many.row(q) for q in range(3)]


def test_flattened_weighs_as_before() -> None:
    chained = from_states(
        [{3: (-0.5, 1)}, {3: (-7.0, 2), 4: (-1.0, 0)}, {2: (-2.0, 0), 4: (-9.0, 1)}, {5: (0.0, 3)}],
        WORDS,
        fail=[1, 2, NOTHING, ROOT],
        back_off=[-0.25, -0.125, 0.0, -1.0],
        root_next=[-1, -1, 0, *[0] * (WORDS - 3)],
    )
    flat = flatten(chained)
    root = np.zeros(WORDS)
    flat.check(np.where(np.arange(WORDS) < 2, -np.inf, root))
    assert flat.row(0) == {2: (-2.375, 0), 3: (-0.5, 1), 4: (-1.25, 0)}
    assert flat.fail.tolist() == [NOTHING, NOTHING, NOTHING, ROOT]
    for state in range(4):
        for token in range(WORDS):
            before, after = (log_weight_by_hand(a, root, state, token) for a in (chained, flat))
            assert before == after or math.isclose(before[0], after[0])
    assert flatten(flat) is flat
    with pytest.raises(ValueError, match="more than 4 arcs when its failures are written out"):
        flatten(chained, limit=4)
