"""Automata over bytes, and what a constraint may cost.

Sizes: Q states.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.limits import Budget
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS

FIRST = len(SPECIALS)  # the symbol of token 0
BYTES = 256
BYTES_PER_STEP = 250  # memory of one step of `Budget`, about
MOST_STRINGS = 100_000  # of a set of strings that is written out


@dataclass(frozen=True)
class Limits:
    """What a constraint from an untrusted regular expression, schema or grammar may cost."""

    states: int = 50_000
    seconds: float = 30.0  # of processor time
    megabytes: int = 1_000

    def __post_init__(self) -> None:
        for name in ("states", "seconds", "megabytes"):
            if not getattr(self, name) > 0:
                raise OptionError(f"Limits({name}={getattr(self, name)}): expected a number above 0")


USUAL_LIMITS = Limits()


def utf8_size(string: object) -> int:
    """Return the number of bytes. 0 for what is no string, or has a half of a surrogate pair."""
    try:
        return len(string.encode()) if isinstance(string, str) else 0
    except UnicodeEncodeError:
        return 0


class LimitError(DataError):
    """A constraint that costs more than it may."""


class Meter(Budget):
    """What one constraint has cost so far. Every check raises LimitError."""

    def __init__(self, name: str, limits: Limits) -> None:
        """name: how errors name the constraint."""
        super().__init__()
        self.name, self.limits, self.began = name, limits, time.thread_time()

    def spend(self, steps: int) -> None:
        self.spent += steps
        self.check_memory(self.spent * BYTES_PER_STEP)
        self.check_time()

    def check_time(self) -> None:
        if time.thread_time() - self.began > self.limits.seconds:
            raise self.error("seconds", f"{self.limits.seconds:g} seconds of processor time", "more")

    def check_memory(self, needed: float) -> None:
        if needed > 1e6 * self.limits.megabytes:
            raise self.error("megabytes", f"{self.limits.megabytes:,} megabytes", f"about {needed / 1e6:,.0f} and more")

    def check_states(self, states: int) -> None:
        if states > self.limits.states:
            raise self.error("states", f"{self.limits.states:,} states", f"{states:,}")

    def error(self, name: str, most: str, found: str) -> LimitError:
        return LimitError(
            f"{self.name}: expected at most {most}, found {found}; make it smaller, or raise the limit with "
            f"limits=Limits({name}=…)"
        )


@dataclass(frozen=True)
class ByteAutomaton:
    """A deterministic automaton over bytes, whose start is state 0."""

    nexts: np.ndarray  # (Q, 256) int32, −1 for none
    finals: np.ndarray  # (Q,) log weight of ending; −inf for none
    log_weights: np.ndarray | None = None  # (Q, 256), of each byte; None: all are 0

    @classmethod
    def from_automaton(cls, automaton: Automaton, class_of: np.ndarray, meter: Meter) -> ByteAutomaton:
        """From an automaton over classes of bytes: class_of (256,), −1 for a byte in no class. Class 0 is FIRST."""
        meter.check_states(automaton.num_states)
        size, width = automaton.num_states, int(class_of.max(initial=-1)) + 1
        nexts = np.full((size, width + 1), -1, dtype=np.int32)  # the last column is of no class
        finals, inner = np.full(size, -np.inf), automaton.tokens != END
        states, classes = automaton.arc_states, automaton.tokens - FIRST
        nexts[states[inner], classes[inner]] = automaton.nexts[inner]
        finals[states[~inner]] = automaton.log_weights[~inner]
        log_weights = None
        if automaton.log_weights.any():
            by_class = np.zeros((size, width + 1))
            by_class[states[inner], classes[inner]] = automaton.log_weights[inner]
            log_weights = by_class[:, class_of]
        return cls(nexts[:, class_of], finals, log_weights)

    def intersection(self, other: ByteAutomaton, meter: Meter) -> ByteAutomaton:
        """The strings of both, with the product of their weights."""
        first, second = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        width = np.int64(len(other.nexts))
        keys, numbers = np.zeros((2, 1), dtype=np.int64)  # known pairs, sorted, and their states
        rows: list[np.ndarray] = []
        while len(first):
            after, beside = self.nexts[first], other.nexts[second]  # shape: (n, 256)
            pairs = np.where((after >= 0) & (beside >= 0), after * width + beside, -1)
            rows.append(pairs)
            found = np.unique(pairs[pairs >= 0])
            new = found[~np.isin(found, keys)]
            meter.check_states(len(keys) + len(new))
            meter.spend(pairs.size // 64)
            keys, numbers = np.append(keys, new), np.append(numbers, len(numbers) + np.arange(len(new)))
            order = np.argsort(keys, kind="stable")
            keys, numbers = keys[order], numbers[order]
            first, second = new // width, new % width
        states = np.empty(len(keys), dtype=np.int64)
        states[numbers] = keys
        first, second = states // width, states % width
        pairs = np.concatenate(rows)
        nexts = np.where(pairs >= 0, numbers[np.searchsorted(keys, pairs.clip(0))], -1).astype(np.int32)
        weights = [
            part.log_weights[of] for part, of in ((self, first), (other, second)) if part.log_weights is not None
        ]
        return ByteAutomaton(
            nexts, self.finals[first] + other.finals[second], sum(weights[1:], weights[0]) if weights else None
        )

    def after(self, begin: bytes) -> ByteAutomaton:
        """The strings that begin with bytes, and go on as one of the automaton."""
        first = len(begin)
        nexts = np.full((first + len(self.nexts), BYTES), -1, dtype=np.int32)
        nexts[np.arange(first), [*begin]] = np.arange(1, first + 1)
        nexts[first:] = np.where(self.nexts >= 0, self.nexts + first, -1)
        weights = None if self.log_weights is None else np.pad(self.log_weights, ((first, 0), (0, 0)))
        return ByteAutomaton(nexts, np.pad(self.finals, (first, 0), constant_values=-np.inf), weights)

    def before(self, end: bytes, meter: Meter) -> ByteAutomaton:
        """The strings of the automaton with bytes after them. Of a string that begins another one, the other is lost.

        A state is one of the automaton, −1 for none, and a set of numbers of bytes of the end, in bits.

        Raises:
            DataError: the strings have weights.
        """
        if self.log_weights is not None or self.finals[np.isfinite(self.finals)].any():
            raise DataError(f"{meter.name}: expected a grammar without weights before the end of a Tag, found weights")
        size, whole = len(self.nexts), 1 << len(end)
        keys = [*((state, 0) for state in range(size)), (-1, whole)]
        numbers = {key: number for number, key in enumerate(keys)}
        rows = []
        for state, matched in keys:  # which grow
            row = np.full(BYTES, -1, dtype=np.int32) if state < 0 else self.nexts[state].copy()
            if state >= 0 and np.isfinite(self.finals[state]):
                matched |= 1
            places = [place for place in range(len(end)) if matched >> place & 1]
            for byte in {end[place] for place in places}:
                after = sum(2 << place for place in places if end[place] == byte)
                key = (-1, whole) if after & whole else (int(row[byte]), after)
                if key not in numbers:
                    numbers[key] = len(keys)
                    keys.append(key)
                    meter.check_states(len(keys))
                row[byte] = numbers[key]
            rows.append(row)
        finals = np.full(len(rows), -np.inf)
        finals[size] = 0.0
        return ByteAutomaton(np.stack(rows), finals)

    def strings(self, meter: Meter) -> dict[bytes, float]:
        """All strings and their log weights. Raises LimitError for more than MOST_STRINGS."""
        found: dict[bytes, float] = {}
        useful = self._leads_to_end()
        waiting: list[tuple[int, bytes, float]] = [(0, b"", 0.0)]
        while waiting:
            state, text, weight = waiting.pop()
            if np.isfinite(self.finals[state]):
                found[text] = weight + float(self.finals[state])
            nexts = self.nexts[state]
            for byte in np.flatnonzero((nexts >= 0) & useful[nexts]).tolist():
                further = 0.0 if self.log_weights is None else float(self.log_weights[state, byte])
                waiting.append((int(nexts[byte]), text + bytes([byte]), weight + further))
            meter.spend(1)
            if len(found) + len(waiting) > MOST_STRINGS or len(text) > len(self.nexts):  # longer: it has a cycle
                raise LimitError(
                    f"{meter.name}: expected at most {MOST_STRINGS:,} strings with canonical=True, found more or "
                    "infinitely many; leave `canonical` out, and all tokenisations are allowed"
                )
        return found

    def _leads_to_end(self) -> np.ndarray:
        """(Q,) bool."""
        useful = np.isfinite(self.finals)
        while True:
            more = useful | ((self.nexts >= 0) & useful[self.nexts]).any(1)
            if (more == useful).all():
                return useful
            useful = more
