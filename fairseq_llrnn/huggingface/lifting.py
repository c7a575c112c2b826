"""From automata over bytes to automata over the tokens of a tokenizer.

Sizes: K tokens, Q states, A arcs.

The texts of tokens are compared as `tokenizer.decode` writes them, without its clean-up of spaces:

    ByteLevel BPE            a token is bytes, also a part of a character
    SentencePiece, Metaspace ▁ is a space, <0x41> a byte. No space before the first word
    WordPiece                ##x continues a word, and any other token but the first one begins with a space

Special tokens match no text, and the end-of-sequence token ends the text. `lift` follows the bytes of all tokens from
each state. The result allows all tokenisations of each string of the automaton. `lift_canonical` allows only the
tokenisation that the tokenizer itself makes.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.limits import Budget
from fairseq_llrnn.automata.shared_nodes import SharedNodes
from fairseq_llrnn.automata.trimming import trim
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.files.text_lines import shown

FIRST = len(SPECIALS)  # the symbol of token 0
BYTES = 256
BYTES_PER_STEP = 250  # memory of one step of `Budget`, about
BYTES_PER_ARC = 120  # … of one arc of an automaton over tokens while it is made
CHUNK = 4_000_000  # pairs of a state and a piece of a token that are followed at once
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


# ---- tokens ---------------------------------------------------------------------------------------------------------


def _byte_of_character() -> dict[str, int]:
    """The characters that ByteLevel tokenizers write for bytes (Radford et al. 2019, `bytes_to_unicode`)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(BYTES) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(BYTES + at): byte for at, byte in enumerate(others)}}


class TokenTexts:
    """The bytes of each token of a tokenizer, at the beginning of a text and elsewhere."""

    def __init__(self, tokenizer: Any) -> None:
        """
        Raises:
            DataError: no fast tokenizer, one with an unsupported decoder, or one without an end of sequence.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise DataError(
                f"expected a fast tokenizer (PreTrainedTokenizerFast), found {type(tokenizer).__name__}; load it with "
                "AutoTokenizer.from_pretrained(…)"
            )
        if tokenizer.eos_token_id is None:
            raise DataError(
                "expected a tokenizer with an end-of-sequence token, found none; set its eos_token, e.g. "
                'tokenizer.eos_token = "[SEP]"'
            )
        self.tokenizer, self.eos, self.size = tokenizer, int(tokenizer.eos_token_id), len(tokenizer)
        self.first: list[bytes | None] = [None] * self.size  # None: matches no text
        self.later: list[bytes | None] = [None] * self.size
        self.spelled: list[bytes] = [b""] * self.size  # of special tokens, too
        self._spellings: dict[str, TokenTexts] = {}
        decoder = _Decoder(json.loads(backend.to_str())["decoder"])
        added = tokenizer.added_tokens_decoder
        special = {*tokenizer.all_special_ids, *(number for number, token in added.items() if token.special)}
        for number, token in enumerate(tokenizer.convert_ids_to_tokens(range(self.size))):
            if number in special or token is None:
                self.spelled[number] = (token or "").encode()
                continue
            if number in added and not decoder.joins_words:
                self.first[number] = self.later[number] = added[number].content.encode()
            else:
                self.first[number], self.later[number] = decoder.texts(token)
            self.spelled[number] = self.later[number] or b""

    def text(self, tokens: Sequence[int], is_first: bool = True) -> bytes | None:
        """The text of tokens. None if one of them is special. is_first: whether they begin a text."""
        parts = [(self.first if is_first and at == 0 else self.later)[token] for at, token in enumerate(tokens)]
        return None if None in parts else b"".join(part for part in parts if part is not None)

    def canonical(self, text: str, name: str) -> list[int]:
        """The tokens of a text by the tokenizer itself. Raises DataError for an unknown character."""
        tokens: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        if self.text(tokens) is None:
            raise DataError(
                f"{name}: expected texts that the tokenizer can write, found unknown characters in {shown(text)}; "
                "remove them"
            )
        return tokens

    def comparable(self, text: str, name: str) -> str:
        """A text as the tokenizer's tokens write it, e.g. in lower case. Raises DataError as `canonical`."""
        written = self.text(self.canonical(text, name))
        assert written is not None
        return written.decode(errors="replace").strip(" ")

    @cached_property
    def inner(self) -> TokenTexts:
        """The same after other text."""
        if self.first == self.later:
            return self
        found = copy.copy(self)
        found.first = self.later
        found.__dict__.pop("tries", None)
        return found

    def spelling(self, string: str) -> TokenTexts:
        """The same after other text, where a special token that is spelled so has this text."""
        tokens = [token for token, text in enumerate(self.later) if text is None and token != self.eos]
        tokens = [token for token in tokens if self.spelled[token] == string.encode()]
        if not tokens:
            return self.inner
        if string not in self._spellings:
            found = self._spellings[string] = copy.copy(self.inner)
            for name in ("tries", "inner"):
                found.__dict__.pop(name, None)
            found.later = [string.encode() if token in tokens else text for token, text in enumerate(self.later)]
            found.first = found.later
        return self._spellings[string]

    @cached_property
    def tries(self) -> tuple[Trie, Trie]:
        """Of the first token and of later ones."""
        return Trie(self.first, with_empty=True), Trie(self.later, with_empty=False)


def token_texts(tokenizer: Any) -> TokenTexts:
    """Return the TokenTexts of a tokenizer. Those of the last two are kept until their tokens change.

    Raises:
        DataError: as TokenTexts.
    """
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        return TokenTexts(tokenizer)  # which raises
    return _kept_texts(tokenizer, len(tokenizer), tokenizer.eos_token_id, tuple(tokenizer.all_special_ids))


@lru_cache(maxsize=2)
def _kept_texts(tokenizer: Any, *_: Any) -> TokenTexts:
    return TokenTexts(tokenizer)


class _Decoder:
    """How a tokenizer's decoder writes a token."""

    def __init__(self, decoder: dict[str, Any] | None) -> None:
        steps = [] if decoder is None else decoder.get("decoders", [decoder])
        kinds = {step["type"]: step for step in steps}
        unknown = set(kinds) - {"ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip", "WordPiece"}
        if unknown:
            raise DataError(
                f"expected a tokenizer with ByteLevel, Metaspace, ByteFallback or WordPiece pieces, found the decoder "
                f"{', '.join(sorted(unknown))}; use a tokenizer of one of these kinds"
            )
        self.bytes = _byte_of_character() if "ByteLevel" in kinds else None
        self.continues = kinds["WordPiece"]["prefix"] if "WordPiece" in kinds else None if decoder is not None else ""
        self.joins_words = self.continues is not None
        self.has_bytes = "ByteFallback" in kinds
        self.replaced = [(s["pattern"]["String"], s["content"]) for s in steps if s["type"] == "Replace"]
        self.stripped = (kinds["Strip"]["content"], kinds["Strip"]["start"]) if "Strip" in kinds else ("", 0)
        self.metaspace = kinds.get("Metaspace")

    def texts(self, token: str) -> tuple[bytes, bytes]:
        """Of the first token of a text, and of a later one."""
        if self.bytes is not None:
            if all(character in self.bytes for character in token):
                text = bytes(self.bytes[character] for character in token)
            else:
                text = token.encode()
            return text, text
        if self.continues is not None:
            if self.continues and token.startswith(self.continues):
                return token.encode(), token[len(self.continues) :].encode()
            return token.encode(), f" {token}".encode()
        if self.has_bytes and len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            first = later = bytes([int(token[3:5], 16)])
        else:
            for old, new in self.replaced:
                token = token.replace(old, new)
            mark = self.metaspace["replacement"] if self.metaspace is not None else ""
            joined = self.metaspace is not None and self.metaspace["prepend_scheme"] != "never"
            first = token.replace(mark, "" if joined else " ").encode() if mark else token.encode()
            later = token.replace(mark, " ").encode() if mark else token.encode()
        content, most = self.stripped
        for _ in range(most):
            first = first.removeprefix(content.encode())
        return first, later


class Trie:
    """The bytes of tokens as a trie. Nodes are numbered by length, so that a node's children are a range."""

    def __init__(self, texts: Sequence[bytes | None], with_empty: bool) -> None:
        ordered = sorted((text, token) for token, text in enumerate(texts) if text is not None and (text or with_empty))
        nodes: list[tuple[int, int]] = [(0, len(ordered))]  # the tokens below each node
        labels: list[int] = [0]
        child_starts: list[int] = []
        depth_of: list[int] = [0]
        own: list[tuple[int, int]] = []
        at = 0
        while at < len(nodes):
            low, high = nodes[at]
            depth = depth_of[at]
            here = low
            while here < high and len(ordered[here][0]) == depth:
                here += 1
            own.append((low, here))
            child_starts.append(len(nodes))
            while here < high:
                byte, begin = ordered[here][0][depth], here
                while here < high and ordered[here][0][depth] == byte:
                    here += 1
                nodes.append((begin, here))
                labels.append(byte)
                depth_of.append(depth + 1)
            at += 1
        self.children = np.array([*child_starts, len(nodes)])  # children of node n: children[n] … children[n + 1] − 1
        self.bytes = np.array(labels, dtype=np.int64)
        self.tokens = np.array([token for _, token in ordered], dtype=np.int64)
        self.own = np.array(own, dtype=np.int64).reshape(-1, 2)  # tokens that end at each node


def _spread(begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """begins[i] … begins[i] + lengths[i] − 1 of all i, and the i of each."""
    owner = np.repeat(np.arange(len(begins)), lengths)
    return np.arange(len(owner)) + (begins - (lengths.cumsum() - lengths))[owner], owner


@dataclass
class _Arcs:
    """Arcs over tokens, as they are found."""

    states: list[np.ndarray]
    tokens: list[np.ndarray]
    nexts: list[np.ndarray]
    weights: list[np.ndarray]


def _follow(automaton: ByteAutomaton, trie: Trie, starts: np.ndarray, meter: Meter, arcs: _Arcs) -> None:
    """Add the arcs of all tokens of a trie from some states."""
    origin, here = starts, starts
    node, weight = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts))
    while len(node):
        low, high = trie.own[node].T
        places, owner = _spread(low, high - low)
        arcs.states.append(origin[owner])
        arcs.tokens.append(trie.tokens[places])
        arcs.nexts.append(here[owner])
        arcs.weights.append(weight[owner])
        meter.check_memory(BYTES_PER_ARC * sum(map(len, arcs.tokens)))
        meter.check_time()
        begin = trie.children[node]
        child, owner = _spread(begin, trie.children[node + 1] - begin)
        after = automaton.nexts[here[owner], trie.bytes[child]]
        alive = after >= 0
        child, owner, byte = child[alive], owner[alive], trie.bytes[child[alive]]
        if automaton.log_weights is not None:
            weight = weight[owner] + automaton.log_weights[here[owner], byte]
        else:
            weight = weight[owner]
        origin, node, here = origin[owner], child, after[alive].astype(np.int64)


def lift(automaton: ByteAutomaton, texts: TokenTexts, meter: Meter) -> Automaton:
    """All tokenisations of the strings: an automaton over FIRST + K symbols, in which token k is FIRST + k.

    State 0 is the start. It has arcs of first tokens, and nothing leads back to it.

    Raises:
        LimitError: more time or memory than the meter allows. DataError: no string can be written in tokens.
    """
    first, later = texts.tries
    arcs = _Arcs([], [], [], [])
    _follow(automaton, first, np.zeros(1, dtype=np.int64), meter, arcs)
    states = len(automaton.nexts)
    # the start over first tokens is a state of its own, 0
    begun = len(arcs.states)
    step = max(1, CHUNK // max(1, len(later.bytes)))
    for low in range(0, states, step):
        _follow(automaton, later, np.arange(low, min(low + step, states)), meter, arcs)
    starts = [np.zeros_like(part) if at < begun else part + 1 for at, part in enumerate(arcs.states)]
    finals = np.flatnonzero(np.isfinite(automaton.finals))
    ending = np.append(finals[finals == 0], finals)  # the first state of all is also that of the start
    ends = np.append(finals[finals == 0], finals + 1)
    origins, weights = np.concatenate([*starts, ends]), np.concatenate([*arcs.weights, automaton.finals[ending]])
    tokens = np.concatenate([*arcs.tokens, np.full(len(ends), END - FIRST)]) + FIRST
    nexts = np.concatenate([*arcs.nexts, np.full(len(ends), -1)]) + 1  # </s> leads to the start, by convention
    return _trimmed(Automaton.from_arcs(FIRST + texts.size, states + 1, 0, origins, tokens, nexts, weights), meter)


def lift_canonical(automaton: ByteAutomaton, texts: TokenTexts, meter: Meter) -> Automaton:
    """As `lift`, with the tokenizer's own tokenisation of each string alone. The set of strings is finite.

    Raises:
        LimitError: too many strings. DataError: a string that the tokenizer cannot write, or changes.
    """
    nodes = SharedNodes(weighted=automaton.log_weights is not None, budget=meter)
    parts = []
    for text, weight in automaton.strings(meter).items():
        tokens = texts.canonical(text.decode(errors="replace"), meter.name)
        if texts.text(tokens) != text:
            raise DataError(
                f"{meter.name}: expected texts as the tokenizer writes them, found {shown(text.decode())}, which it "
                f"changes to {shown(texts.comparable(text.decode(), meter.name))}; change the text"
            )
        rest = (nodes.end, weight)
        for token in reversed(tokens):
            rest = nodes.after(FIRST + token, rest)
        parts.append(rest)
    node, _ = nodes.union(parts)
    return _trimmed(nodes.automaton(node, FIRST + texts.size), meter)


def _trimmed(automaton: Automaton, meter: Meter) -> Automaton:
    try:
        return trim(automaton)
    except ValueError:
        raise DataError(
            f"{meter.name}: expected a string that the tokenizer's tokens can write, found none; use characters that "
            "it has, as its decoder writes them (some tokenizers have lower case alone)"
        ) from None
