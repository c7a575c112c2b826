"""Grammars: strings and weights as enumerated tree by tree, minimal automata, bounds, every bad line."""

import itertools
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from automata import string_weights
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.automata.grammar import grammar_automaton
from fairseq_llrnn.automata.grammar_file import (
    NO_LIMIT,
    Alternative,
    Grammar,
    derives_itself,
    least_depth,
    least_words,
    most,
)
from fairseq_llrnn.automata.limits import Budget
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList

WORDS = WordList((*SPECIALS, "a", "b", "c"), np.array([0] * 4 + [5] * 3))
A, B, C = 4, 5, 6


def read(tmp_path: Path, text: str, unknown: str = "error") -> Automaton:
    file = tmp_path / "small.grammar"
    file.write_text(text, encoding="utf-8")
    return read_automaton(file, WORDS, unknown).automaton


def language(automaton: Automaton, longest: int) -> dict[str, float]:
    return string_weights(automaton, WORDS.symbols[4:], 4, longest)


def trees(grammar: Grammar, name: str, depth: int) -> dict[tuple[int, ...], float]:
    """Every string within the depth, with the sum over its trees of the products of weights."""
    result: dict[tuple[int, ...], float] = defaultdict(float)
    if depth == 0:
        return result
    for rule in grammar.rules[name]:
        parts = [{(i,): 1.0} if isinstance(i, int) else trees(grammar, i, depth - 1) for i in rule.items]
        for choice in itertools.product(*(part.items() for part in parts)):
            string = tuple(word for words, _ in choice for word in words)
            result[string] += math.exp(rule.log_weight) * math.prod(weight for _, weight in choice)
    return result


def work(grammar: Grammar, name: str, depth: int) -> tuple[int, int]:
    """How many trees `trees` goes through for its result, and how many in all, with those of the parts; by counting."""
    if depth == 0:
        return 0, 0
    of_parts = {
        item: work(grammar, item, depth - 1) for rule in grammar.rules[name] for item in rule.items if item in NAMES
    }
    own = sum(math.prod(of_parts[i][0] for i in rule.items if i in of_parts) for rule in grammar.rules[name])
    inner = sum(of_parts[i][1] for rule in grammar.rules[name] for i in rule.items if i in of_parts)
    return own, own + inner


MOST_TREES = 2000  # that a random test enumerates
NAMES = ("S", "X", "Y")
ITEMS = st.one_of(st.sampled_from((A, B, C)), st.sampled_from(NAMES))
RULES = st.lists(st.tuples(st.lists(ITEMS, max_size=3), st.sampled_from((0.5, 1.0, 2.0))), min_size=1, max_size=3)


@given(rules=st.tuples(RULES, RULES, RULES), depth=st.integers(1, 4), weighted=st.booleans(), length=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_strings_are_those_of_the_trees(
    rules: tuple[list, list, list], depth: int, weighted: bool, length: int
) -> None:
    grammar = Grammar("S", depth=depth, length=length if length < 5 else None, weighted=weighted)
    for name, alternatives in zip(NAMES, rules, strict=True):
        # an X that derives itself without another word has infinitely many trees: such rules get a word
        grammar.rules[name] = [
            Alternative((*items, A) if all(isinstance(i, str) for i in items) else tuple(items), math.log(w))
            for items, w in alternatives
        ]
        if not weighted:
            grammar.rules[name] = [Alternative(rule.items) for rule in grammar.rules[name]]
    while work(grammar, "S", depth)[1] > MOST_TREES:  # one level has three trees at most
        depth -= 1
    grammar.depth = depth
    expected = {s: w for s, w in trees(grammar, "S", depth).items() if len(s) <= (grammar.length or 99)}
    if not expected:
        with pytest.raises(ValueError, match="has no string within its bounds"):
            grammar_automaton(grammar, len(WORDS))
        return
    automaton = grammar_automaton(grammar, len(WORDS))
    automaton.check()
    total = sum(expected.values()) if weighted else 1.0
    wanted = {" ".join(WORDS.symbols[i] for i in s): w / total if weighted else 1.0 for s, w in expected.items()}
    longest = max(map(len, expected))
    found = string_weights(automaton, WORDS.symbols[4:], 4, longest + 1) if longest < 6 else None
    for string, weight in wanted.items():
        one = string_weights(automaton, WORDS.symbols[4:], 4, 0, [string])
        assert one[string] == pytest.approx(weight, rel=1e-6)
    if found is not None:
        assert set(found) == set(wanted)


def test_nested_brackets(tmp_path: Path) -> None:
    automaton = read(tmp_path, '# pairs\n%depth 3\nS -> "a" S "b" | \'c\'\n')
    assert language(automaton, 6) == {"c": 1, "a c b": 1, "a a c b b": 1}
    # one state before each word, and what is behind `c` knows how many brackets are open
    assert automaton.num_states == 6


def test_a_regular_grammar_needs_no_bound(tmp_path: Path) -> None:
    assert language(read(tmp_path, 'S -> X X\nX -> "a"\n   | "b c" |\n'), 5) == dict.fromkeys(
        ["", "a", "b c", "a a", "a b c", "b c a", "b c b c"], 1
    )


def test_weights_are_a_distribution_at_every_step(tmp_path: Path) -> None:
    automaton = read(tmp_path, '%depth 9\nS -> "a" S [0.5] | "b" [0.25] | "a" "b" [0.25]\n')
    totals = np.bincount(automaton.arc_states, np.exp(automaton.log_weights))
    np.testing.assert_allclose(totals, 1.0)
    found = language(automaton, 10)
    assert found["a b"] / found["b"] == pytest.approx((0.25 + 0.5 * 0.25) / 0.25)


def test_bounded_in_length_alone(tmp_path: Path) -> None:
    automaton = read(tmp_path, '%length 5\nS -> S S | "a" | "b" S "c"\n')
    found = set(language(automaton, 6))
    assert {"a", "a a", "b a c", "a b a c", "b b a c c", "a a a a a"} <= found
    assert max(len(s.split()) for s in found) == 5 and "b a" not in found


def test_equal_continuations_are_one(tmp_path: Path) -> None:
    """100 ways to the same end cost no more states than one."""
    rules = "".join(f'X{i} -> "a" Y "c"\n' for i in range(100))
    automaton = read(tmp_path, f'S -> {" | ".join(f"X{i}" for i in range(100))}\n{rules}Y -> "b" | "b" "b"\n')
    assert automaton.num_states == 5


def test_deep_nesting(tmp_path: Path) -> None:
    automaton = read(tmp_path, '%depth 600\nS -> "a" S "b" | "c"\n')
    assert automaton.num_states == 1200


def test_unknown_symbols(tmp_path: Path) -> None:
    text = 'S -> "a" | "b z" | X "c"\nX -> "z"\n'
    with pytest.raises(DataError, match=r"small.grammar, line 1: symbol 'z' is not in the dictionary"):
        read(tmp_path, text)
    assert language(read(tmp_path, text, "drop"), 3) == {"a": 1}


def test_all_unknown_symbols_are_said_at_once(tmp_path: Path) -> None:
    one = "line 1: symbol 'z' is not in the dictionary; write it as the text has it, remove it, or use automaton"
    with pytest.raises(DataError, match=one):
        read(tmp_path, 'S -> "a" | "z" "z"\n')
    two = "symbol 'z' is not in the dictionary, nor is 'y' .2 in all.; write them as the text has them, remove them"
    with pytest.raises(DataError, match=two):
        read(tmp_path, 'S -> "z" | "y" | "z"\n')
    many = "line 2: symbol '1' is not in the dictionary, nor are '2', '3', '4', … .6 in all.; .*unknown_symbols=drop."
    with pytest.raises(DataError, match=many):
        read(tmp_path, 'S -> "a" X\nX -> "1" | "2 3"\n| "4" | "5" | "6"\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# nothing\n", "expected rules `X -> …`, found none"),
        ('"a" b\n', "line 1: expected `X -> …`, found "),
        ('| "a"\n', "line 1: expected `X -> …`, found "),
        ('S -> "a\n', "line 1: expected words in quotes, names and |, found "),
        ('S -> "a" X\n', "line 1: 'X' has no rule; add one, or put quotes around it if it is a word"),
        ('S -> "a" [x]\n', "line 1: expected a weight > 0 in brackets, found 'x'"),
        ('S -> "a" [0]\n', "line 1: expected a weight > 0 in brackets, found '0'"),
        ('S -> "a" [1] "b"\n', "line 1: expected nothing after the weight of an alternative"),
        ('S -> "a" [1] | "b"\n', "a weight .w. after every alternative, or none, found 1 without one"),
        ('%depth\nS -> "a"\n', "line 1: expected `%depth N` or `%length N` with N ≥ 1, found '%depth'"),
        ('%depth 0\nS -> "a"\n', "line 1: expected `%depth N` or `%length N`"),
        ('S -> "a" S | "b"\n', "nests without a bound; give it `%depth N` or `%length N`"),
        ('%depth 4\nS -> S | "b"\n', "the grammar's 'S' .line 2. derives itself without another word"),
        ('%depth 4\nS -> X S Y | "b"\nX -> |"a"\nY -> X X\n', "the grammar's 'S' .line 2. derives itself without an"
         "other word"),
        ('%depth 1\nS -> X\nX -> "a"\n', "has no string within its bounds; fix the file"),
        ('S -> S "a"\n', "nests without a bound"),
        ('%depth 9\nS -> S "a"\n', "has no string within its bounds"),
        ('S -> "</s>"\n', "line 1: arcs cannot have </s>, which final states add"),
    ],
)  # fmt: skip
def test_bad_grammars(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_what_is_too_large_is_refused() -> None:
    grammar = Grammar("S", depth=12)
    grammar.rules["S"] = [Alternative((A, "S", B, "S", C)), Alternative((B, "S", A, "S", A)), Alternative((C,))]
    with pytest.raises(
        ValueError, match="takes more than 500 steps .*, most for 'S' before .* different continuations"
    ):
        grammar_automaton(grammar, len(WORDS), Budget(500))
    deep = Grammar("S", {"S": [Alternative((A, "S")), Alternative((B,))]}, depth=10**6)
    with pytest.raises(ValueError, match="too long or too deep; bound them more tightly"):
        grammar_automaton(deep, len(WORDS))


def doubling(levels: int, weight: str = "", leaf: str = '"a" | "b"') -> str:
    """Every nonterminal is two of the next one: 2^levels words."""
    rules = [f'N{i} -> N{i + 1} N{i + 1} {weight} | "a" {weight}' for i in range(levels)]
    return "\n".join([*rules, f"N{levels} -> " + " | ".join(f"{word} {weight}" for word in leaf.split(" | "))])


@pytest.mark.parametrize(
    "text",
    [
        doubling(8),
        doubling(50, leaf='"a"'),
        doubling(50, "[0.5]"),
        "%length 40\n" + doubling(2).replace("N2 ->", 'N2 -> "a" N0 "b" N0 "c" | '),
    ],
)
def test_grammars_that_explode_are_refused_before_they_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Steps stand for time and memory: at the default, a few seconds, and 400 MB at most."""
    monkeypatch.setattr("fairseq_llrnn.automata.limits.MOST_STEPS", 100_000)
    message = r"more than 100,000 steps to be made deterministic, most for 'N\d+' \(line \d+\) before [\d,]+ different"
    with pytest.raises(
        DataError, match=rf"small.grammar: .*{message} continuations: use fewer nonterminals .*; fix the file"
    ):
        read(tmp_path, text)


def test_what_is_known_of_a_grammar_costs_as_much_as_its_rules() -> None:
    """Each nonterminal needs the next one: once a pass over all rules for each."""
    rules = {f"N{i}": [(f"N{i + 1}", f"N{i + 1}")] for i in range(20_000)} | {"N20000": [(A, A)]}
    assert least_depth(rules)["N0"] == 20_001 and least_depth(rules)["N19999"] == 2
    assert least_words(rules)["N19998"] == 8 and least_words(rules)["N0"] == NO_LIMIT - 1
    assert most(rules)[0]["N0"] == 20_001 and most(rules)[1]["N19998"] == 8
    assert derives_itself(rules, least_words(rules)) is None
    rules["N20000"].append(("N0", "E"))
    rules["E"] = [()]
    assert derives_itself(rules, least_words(rules)) is None, "N0 has two of N1"
    rules["N20000"].append(("E", "N20000"))
    assert derives_itself(rules, least_words(rules)) == "N20000"
    assert most(rules)[0]["N0"] == NO_LIMIT


@given(rules=st.tuples(RULES, RULES, RULES))
def test_bounds_are_those_of_the_trees(rules: tuple[list, list, list]) -> None:
    """Against a pass over all rules until nothing changes."""
    items = {name: [tuple(way) for way, _ in alternatives] for name, alternatives in zip(NAMES, rules, strict=True)}
    words, depth = dict.fromkeys(NAMES, math.inf), dict.fromkeys(NAMES, math.inf)
    for _ in range(len(NAMES) + 1):
        for name, ways in items.items():
            for way in ways:
                words[name] = min(words[name], sum(words[i] if isinstance(i, str) else 1 for i in way))
                depth[name] = min(depth[name], 1 + max((depth[i] for i in way if isinstance(i, str)), default=0))
    finite = {name: NO_LIMIT if math.isinf(value) else value for name, value in words.items()}
    assert least_words(items) == finite
    assert least_depth(items) == {name: NO_LIMIT if math.isinf(value) else value for name, value in depth.items()}
    after = {
        n: {
            i
            for w in ways
            for k, i in enumerate(w)
            if isinstance(i, str) and not any(words[j] if isinstance(j, str) else 1 for j in w[:k] + w[k + 1 :])
        }
        for n, ways in items.items()
    }
    for _ in NAMES:
        after = {n: parts.union(*(after[p] for p in parts)) for n, parts in after.items()}
    found = derives_itself(items, least_words(items))
    assert (found is None) == all(n not in parts for n, parts in after.items())
    assert found is None or found in after[found]
