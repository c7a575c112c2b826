"""Small automata for tests, and their weights looked up one word at a time."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton

WORDS = 12  # 0 and 1 are never predicted, 2 is </s>
PADDING = 1


def from_states(
    states: Sequence[Mapping[int, tuple[float, int]]],
    num_symbols: int,
    *,
    starts: Sequence[int] = (0,),
    fail: Sequence[int] | None = None,
    back_off: Sequence[float] | None = None,
    root_next: Sequence[int] | None = None,
    memory: int | None = None,
) -> Automaton:
    """From one mapping per state: token -> log weight and next state. Without `fail` all fail to NOTHING."""
    rows = [sorted(row.items()) for row in states]
    flat = [(token, weight, after) for row in rows for token, (weight, after) in row]
    return Automaton(
        num_symbols=num_symbols,
        starts=np.array(starts, dtype=np.int64),
        offsets=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        tokens=np.array([token for token, _, _ in flat], dtype=np.int64),
        nexts=np.array([after for _, _, after in flat], dtype=np.int64),
        log_weights=np.array([weight for _, weight, _ in flat], dtype=np.float64),
        fail=np.full(len(rows), NOTHING, dtype=np.int64) if fail is None else np.array(fail, dtype=np.int64),
        back_off=np.zeros(len(rows)) if back_off is None else np.array(back_off, dtype=np.float64),
        root_next=np.full(num_symbols, -1, np.int64) if root_next is None else np.array(root_next, dtype=np.int64),
        memory=memory,
    )


def random_root(seed: int, num_words: int = WORDS) -> np.ndarray:
    """log b₀ (V,): tokens 0 and 1 are forbidden."""
    root = np.random.default_rng(seed).normal(-2.0, 2.0, num_words)
    root[:2] = -np.inf
    return root


def random_automaton(
    seed: int, num_words: int = WORDS, num_states: int = 9, blocks: int = 1
) -> tuple[Automaton, np.ndarray]:
    """States of all kinds: with chains of failure, explicit, without arcs, with all words; `blocks` − 1 folds."""
    assert num_states % blocks == 0
    block = num_states // blocks
    rng = np.random.default_rng(seed)
    root = random_root(seed, num_words)
    fail = [int(rng.choice([NOTHING, ROOT]))]
    for state in range(1, num_states):
        rooted = [ROOT, *(s for s in range(state // block * block, state) if fail[s] != NOTHING)]
        fail.append(int(rng.choice([NOTHING, *rooted])))
    states = []
    for state in range(num_states):
        first = state // block * block
        tokens = np.flatnonzero(rng.random(num_words) < rng.choice([0.0, 0.2, 0.6, 1.0]))
        weights = rng.normal(-2.0, 3.0, num_words)
        states.append(
            {
                int(x): (float(weights[x]), 0 if x == END else first + int(rng.integers(block)))
                for x in tokens[tokens >= END]
            }
        )
    back_off = np.where(np.array(fail) == NOTHING, 0.0, rng.normal(-0.5, 1.0, num_states))
    after = rng.integers(block, size=num_words)
    after[:2], after[END] = -1, 0
    starts = (0, *(block * k + int(rng.integers(block)) for k in range(1, blocks)))
    automaton = from_states(
        states, num_words, starts=starts, fail=fail, back_off=back_off.tolist(), root_next=after.tolist()
    )
    return automaton, root


def ngram_like(seed: int, num_words: int = 8, order: int = 3) -> tuple[Automaton, np.ndarray]:
    """The automaton of a random back-off model: a state per history, its memory order − 1 words."""
    rng = np.random.default_rng(seed)
    root = random_root(seed, num_words)
    words = range(END, num_words)
    # histories are sequences of the last words; (</s>,) begins a sentence
    histories = [()] + [(x,) for x in words if x == END or rng.random() < 0.8]
    for _ in range(order - 2):
        longest = [h for h in histories if len(h) == len(histories[-1]) and h]
        histories += [(*h, x) for h in longest for x in words if x != END and (x,) in histories and rng.random() < 0.4]
    index = {h: i for i, h in enumerate(histories)}

    def after(history: tuple[int, ...], word: int) -> int:
        longer = (*history, word)[-(order - 1) :]
        if word == END:
            return index[(END,)]
        return next(index[longer[i:]] for i in range(len(longer) + 1) if longer[i:] in index)

    states = []
    for history in histories:
        needed = [x for x in words if (*history, x) in index]  # a history goes on only by what the model has seen
        seen = [x for x in words if history and (x in needed or rng.random() < 0.3)]
        states.append({x: (float(rng.normal(-2, 1)), after(history, x)) for x in seen})

    def shorter(history: tuple[int, ...]) -> int:
        return next((index[history[i:]] for i in range(1, len(history)) if history[i:] in index), index[()])

    # the shortest histories fail to the root, through the empty one
    fail = [ROOT if not history else shorter(history) for history in histories]
    automaton = from_states(
        states,
        num_words,
        starts=(index[(END,)],),
        fail=fail,
        back_off=[0.0 if not h else float(rng.normal(-1, 0.5)) for h in histories],
        root_next=[-1, -1, *(after((), x) for x in words)],
        memory=order - 1,
    )
    return automaton, root


def log_weight_by_hand(automaton: Automaton, root: np.ndarray, state: int, token: int) -> tuple[float, int]:
    """log b(q, x) and the next state, by the definition; −inf where nothing gives the word.

    After such a word, the state is a further one, which gives none until the sentence ends.
    """
    cost, model = 0.0, state // automaton.block_size
    if state == automaton.num_states:
        state = NOTHING
    while state >= 0:
        row = automaton.row(state)
        if token in row:
            return cost + row[token][0], row[token][1]
        cost += float(automaton.back_off[state])
        state = int(automaton.fail[state])
    if state == NOTHING:
        return -math.inf, int(automaton.starts[0]) if token in (PADDING, END) else automaton.num_states
    after = int(automaton.root_next[token])
    after = int(automaton.starts[0]) if after < 0 else after
    return cost + float(root[token]), after + (0 if token == END else model * automaton.block_size)


def string_weights(
    automaton: Automaton, names: Sequence[str], first: int, longest: int, strings: Sequence[str] | None = None
) -> dict[str, float]:
    """The weights of all strings of at most so many words (or of `strings`) that have any.

    `names` are the symbols that follow the `first` ones.
    """
    index = {name: first + i for i, name in enumerate(names)}
    root = np.zeros(automaton.num_symbols)
    if strings is None:
        strings = [" ".join(s) for n in range(longest + 1) for s in itertools.product(names, repeat=n)]
    found = {}
    for string in strings:
        state, total = int(automaton.starts[0]), 0.0
        for word in [*(index[w] for w in string.split()), END]:
            step, state = log_weight_by_hand(automaton, root, state, word)
            total += step
        if not math.isinf(total):
            found[string] = math.exp(total)
    return found
