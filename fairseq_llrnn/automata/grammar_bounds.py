"""Bounds on each nonterminal of a grammar, before an automaton is built: how deep and how long its trees are.

Each function looks at each rule a few times, however the rules depend on each other.
"""

from __future__ import annotations

import heapq
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

NO_LIMIT = sys.maxsize

Item = int | str  # a symbol of the dictionary, or a nonterminal
Items = tuple[Item, ...]
Rules = Mapping[str, Sequence[Items]]  # the ways to write each nonterminal


def names_in(items: Items) -> set[str]:
    """The nonterminals of an alternative."""
    return {item for item in items if isinstance(item, str)}


def least_words(rules: Rules) -> dict[str, int]:
    """The number of words of each nonterminal's shortest string; NO_LIMIT where it has none."""
    return _least(rules, lambda items, values: sum(1 if isinstance(item, int) else values[item] for item in items))


def least_depth(rules: Rules) -> dict[str, int]:
    """The depth of each nonterminal's flattest tree; NO_LIMIT where it has none."""
    return _least(rules, lambda items, values: 1 + max((values[name] for name in names_in(items)), default=0))


def _least(rules: Rules, measure: Callable[[Items, Mapping[str, int]], int]) -> dict[str, int]:
    """The least value over trees, of a measure that is nowhere less than that of a part.

    Knuth 1977, "A Generalization of Dijkstra's Algorithm".
    """
    values = dict.fromkeys(rules, NO_LIMIT)
    uses: dict[str, list[tuple[str, Items]]] = defaultdict(list)
    missing: dict[tuple[str, Items], int] = {}
    queue: list[tuple[int, str]] = []
    for name, alternatives in rules.items():
        for items in set(alternatives):
            inner = names_in(items)
            missing[name, items] = len(inner)
            for each in inner:
                uses[each].append((name, items))
            if not inner:
                queue.append((measure(items, values), name))
    heapq.heapify(queue)
    while queue:
        value, name = heapq.heappop(queue)
        if values[name] < NO_LIMIT:
            continue
        values[name] = min(value, NO_LIMIT - 1)
        for use in uses[name]:
            missing[use] -= 1
            if missing[use] == 0 and values[use[0]] == NO_LIMIT:
                heapq.heappush(queue, (measure(use[1], values), use[0]))
    return values


def most(rules: Rules) -> tuple[dict[str, int], dict[str, int]]:
    """The greatest depth and number of words of each nonterminal's trees; NO_LIMIT where it nests."""
    depth, words = dict.fromkeys(rules, NO_LIMIT), dict.fromkeys(rules, NO_LIMIT)
    inner = {name: set[str]().union(*map(names_in, alternatives)) for name, alternatives in rules.items()}
    users: dict[str, list[str]] = defaultdict(list)
    for name, parts in inner.items():
        for part in parts:
            users[part].append(name)
    missing = {name: len(parts) for name, parts in inner.items()}
    ready = [name for name, number in missing.items() if number == 0]
    while ready:
        name = ready.pop()
        depth[name] = 1 + max((depth[part] for part in inner[name]), default=0)
        longest = max((sum(1 if isinstance(i, int) else words[i] for i in items) for items in rules[name]), default=0)
        words[name] = min(longest, NO_LIMIT)
        for user in users[name]:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    return depth, words


def derives_itself(rules: Rules, shortest: Mapping[str, int]) -> str | None:
    """A nonterminal that derives itself and no word more, if there is one: it has infinitely many trees."""
    after = {name: [part for items in ways for part in _alone(items, shortest)] for name, ways in rules.items()}
    done: set[str] = set()
    for first in rules:
        path, on_path = [(first, iter(after[first]))], {first}
        while path and first not in done:
            name, targets = path[-1]
            for target in targets:
                if target in on_path:
                    return target
                if target not in done:
                    path.append((target, iter(after[target])))
                    on_path.add(target)
                    break
            else:
                path.pop()
                on_path.discard(name)
                done.add(name)
    return None


def _alone(items: Items, shortest: Mapping[str, int]) -> list[str]:
    """The nonterminals of an alternative beside which all else may be empty."""
    full = [item for item in items if isinstance(item, int) or shortest[item] > 0]
    candidates = items if not full else full if len(full) == 1 else ()
    return [item for item in candidates if isinstance(item, str)]
