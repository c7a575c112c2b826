"""Completions of texts under llguidance's parser, so that each text ends within a number of tokens.

A hypothesis keeps a *witness*: tokens with which its text can end, the end among them. A token is allowed if one of
these is a completion after it, and short enough:

    1. the witness without its first token, if that is the token
    2. the witness
    3. the witness without some of its first tokens, which the token contains
    4. the rest of a longer token, and what 1 to 5 find after that one
    5. what `Completions.search` finds, which may go on with a part of the witness

All of this depends on the written text alone, so that scores stay exact. The search tries closing brackets, quotes and
commas first, opening brackets and blanks last. A token that leads to the mask of one of the last parsers makes no
progress, and waits until all others have failed. Where a rule can contain itself, the search would never leave it, and
masks show no progress inside a regular expression such as `.*@.*`. So the search also tries hints: short texts of the
rules of a Lark grammar, and the shortest texts of regular expressions. If a depth gives no text, it is searched again
with the strings of a Lark grammar as hints. The search is not complete: a text that could end in time may count as one
that cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

Witness = tuple[int, ...]  # tokens, the last one is the end
Hints = Callable[[], Sequence[Witness]]
MERGED = 6  # tokens of a witness that one token may contain
FEW = 64  # allowed tokens that are all tried. Of more, single bytes are
ALIKE = 2  # … so many letters, and so many digits
RECENT = 3  # parsers before one, whose masks show whether a token makes progress
SHORT = tuple(range(1, 9))  # tokens of a completion: searches for the shortest one
DEPTHS, DEPTHS_AT_START = (2, 8, 24, 400), (100, 24, 400, 12_000)  # … for any
NODES, NODES_AT_START, NODES_OF_DEPTH = 30, 2_000, 2  # parsers of a search, and more for each token of its depth
NODES_OF_RULES = 200  # … if the grammar has several rules
MOST_KNOWN = 1 << 10  # masks whose tokens are kept
LONGEST_TOKEN = 32  # bytes of tokens in a completion
QUOTE = ord('"')
SEPARATORS = 2  # the rank of a comma
RANKS = {0: b"}])>", 1: b'"', 2: b",", 2.5: b"'`", 7: b":=", 8: b"[", 9: b"(", 10: b"{<", 11: b" \t\n\r"}  # search
NOT_PLAIN = {'"', "\\", "\x7f", *map(chr, range(32))}  # characters that JSON strings do not hold as they are
LETTER, DIGIT, OTHER = 3.0, 5.0, 6.0
TOKEN_ENDS, WORD_ENDS = 0.5, 4.0  # the longest one of words is first: a key or value that must come next


class Effort(NamedTuple):
    """How a grammar is searched."""

    hints: Hints = tuple  # returns tokens that may go on together
    strings: Hints = tuple  # returns more of them, for when these find nothing
    nodes: int = NODES  # parsers of a search, apart from NODES_OF_DEPTH
    can_undo: bool = True  # whether its parsers can take tokens back


USUAL = Effort()


def _ranks() -> list[float]:
    """How late the search tries each byte, (256,)."""
    found = [OTHER] * 256
    for byte in range(128):
        if chr(byte).isalpha():
            found[byte] = LETTER
        elif chr(byte).isdigit():
            found[byte] = DIGIT
    for rank, signs in RANKS.items():
        for sign in signs:
            found[sign] = rank
    return found


class Completions:
    """Finds completions of a parser's states, for one tokenizer."""

    def __init__(self, texts: Sequence[bytes | None], cannot_begin: np.ndarray, eos: int) -> None:
        """
        Args:
            texts: of the tokens, as the parser reads them.
            cannot_begin: (K,) bool, tokens that do not begin a text.
        """
        self.texts, self.cannot_begin, self.eos = texts, cannot_begin, eos
        self.ranks = _ranks()
        self.orders: dict[int, list[float]] = {}  # of tokens that were tried
        self.tokens: dict[bytes, int] = {}
        self._known: dict[tuple[bytes, bool], tuple[list[Witness], list[Witness], frozenset[int]]] = {}  # of `_tried`
        for token, text in enumerate(texts):
            if text:
                self.tokens.setdefault(text, token)
        single = [text for text in self.tokens if len(text) == 1]
        single.sort(key=lambda text: (text[0] != QUOTE, self.ranks[text[0]]))  # a string of JSON ends first
        self.single = np.array([self.tokens[text] for text in single], dtype=np.int64)
        opening = bytes(sorted(b'{[(<,:="\''))
        counts = [0 if text is None else sum(map(text.count, map(bytes, zip(opening)))) for text in texts]
        self.num_opening = 1 + np.array(counts)  # how often a token may begin what has to be completed

    @cached_property
    def plain_lengths(self) -> np.ndarray:
        """The characters of each token that a JSON string may hold as they are, (K,). 0 for other tokens."""
        found = np.zeros(len(self.texts), dtype=np.int64)
        for token, text in enumerate(self.texts):
            try:
                characters = (text or b"").decode()
            except UnicodeDecodeError:
                continue
            if not set(characters) & NOT_PLAIN:
                found[token] = len(characters)
        return found

    def known_after(self, matcher: Any, token: int, witness: Witness, most: int) -> Witness | None:
        """Return a part of a witness that goes on after a token, or None. It has at most so many tokens, unless the
        token is the first one of the witness.
        """
        if token == witness[0]:
            return witness[1:]
        rests = (witness[at:] for at in range(min(MERGED, len(witness) - 1) + 1))
        return first_that_fits(matcher, token, (rest for rest in rests if len(rest) <= most))

    def search(
        self, matcher: Any, most: int, witness: Witness = (), is_first: bool = False, effort: Effort = USUAL
    ) -> Witness | None:
        """Return a completion: of at most so many tokens, or else the shortest that is found, or None.

        Args:
            witness: of an earlier parser. A completion may go on with a part of it.
            is_first: whether the text is empty. The search then takes longer.
        """
        depths = [*dict.fromkeys(min(depth, 2 * most) for depth in DEPTHS)]  # two tokens of the search may be one
        if is_first:
            effort, depths = effort._replace(nodes=NODES_AT_START), [*SHORT, *DEPTHS_AT_START]
        best = self._first_of_depths(matcher, depths, witness, is_first, effort)
        if best is None or len(best) <= most:
            return best
        best = self._in_fewest_tokens(matcher, best, is_first)
        if most < len(best) <= SHORT[-1] + 2:
            in_tokens = effort._replace(hints=tuple)  # a hint may be long
            for depth in SHORT[: len(best) - 2]:
                found = self._first_of_depth(matcher, depth, (), is_first, in_tokens)
                if found is not None:
                    return min(best, self._in_fewest_tokens(matcher, found, is_first), key=len)
        return best

    def short_text(self, matcher: Any, effort: Effort) -> Witness | None:
        """Return a text of at most SHORT tokens or hints, and the end, or None if a brief search finds none."""
        return self._first_of_depths(matcher, SHORT, (), False, effort)

    def _first_of_depths(
        self, matcher: Any, depths: Sequence[int], witness: Witness, is_first: bool, effort: Effort
    ) -> Witness | None:
        efforts = [effort]
        if effort.strings():
            hints = [*effort.hints(), *effort.strings()]
            efforts.append(effort._replace(hints=lambda: hints))
        for depth, each in product(depths, efforts):
            if (found := self._first_of_depth(matcher, depth, witness, is_first, each)) is not None:
                return found
        return None

    def _first_of_depth(
        self, matcher: Any, depth: int, witness: Witness, is_first: bool, effort: Effort
    ) -> Witness | None:
        """Return the first completion among a limited number of parsers, of at most so many tokens before a witness.

        A hint counts as one token.
        """
        if matcher.is_accepting():
            return (self.eos,)
        matcher = matcher.deep_copy()
        left = effort.nodes + NODES_OF_DEPTH * depth
        path: list[Witness] = []
        masks: list[bytes] = [matcher.compute_bitmask()]
        stack = [self._children(matcher, masks, is_first, effort)]
        while stack:
            found = next(stack[-1], None)
            left -= 1
            if left < 0:
                return None
            if found is None:
                stack.pop()
                masks.pop()
                if path:
                    path.pop()
                continue
            tokens, mask, after = found
            path.append(tokens)
            if after.is_accepting():
                return (*chain(*path), self.eos)
            for at in reversed(range(len(witness) - 1)):
                if _has(mask, witness[at]) and after.validate_tokens([*witness[at:]]) == len(witness) - at:
                    return (*chain(*path), *witness[at:])
            if len(path) < depth:
                masks.append(mask)
                stack.append(self._children(after, masks, False, effort))
            else:
                path.pop()
        return None

    def _children(
        self, matcher: Any, masks: list[bytes], is_first: bool, effort: Effort
    ) -> Iterator[tuple[Witness, bytes, Any]]:
        """The tokens that the search tries, and masks and parsers after them. Those without progress are last.

        A token makes no progress if it leads to the mask of a recent parser, and neither closes nor separates. Hints
        are tried before letters, and where many tokens are allowed, before all but a quote.

        Args:
            matcher: it has read the tokens until the next ones are asked for.
            masks: of the parser and of those before it.
        """
        recent, others = masks[-RECENT:], []
        first, last, ending = self._tried(masks[-1], is_first)
        hints = (hint for hint in effort.hints() if matcher.validate_tokens([*hint]) == len(hint))
        for tokens in chain(first, hints, last):
            for found in _after(matcher, tokens, effort.can_undo):
                if found[1] not in recent or ending.issuperset(tokens) or _is_forced(found[1]):
                    yield found
                else:
                    others.append(tokens)
        for tokens in others:
            yield from _after(matcher, tokens, effort.can_undo)

    def can_undo(self, matcher: Any) -> bool:
        """Return whether a grammar's parsers can take tokens back: not with `max_tokens` or `stop` in Lark."""
        other = matcher.deep_copy()
        first, last, _ = self._tried(other.compute_bitmask(), False)
        tokens = next(iter((*first, *last)), None)
        return tokens is None or not other.consume_tokens([*tokens]) or bool(other.rollback(1))

    def _tried(self, mask: bytes, is_first: bool) -> tuple[list[Witness], list[Witness], frozenset[int]]:
        """The tokens that the search tries before and after the hints, and those that close or separate."""
        key = mask, is_first
        if key not in self._known:
            candidates, are_few = self._candidates(mask, is_first)
            ranks = [self.ranks[(self.texts[token] or b"\0")[0]] for token in candidates]
            before = sum(rank < LETTER for rank in ranks) if are_few else ranks[:1].count(self.ranks[QUOTE])
            ending = (token for token, rank in zip(candidates, ranks, strict=True) if are_few and rank <= SEPARATORS)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = [*zip(candidates[:before])], [*zip(candidates[before:])], frozenset(ending)
        return self._known[key]

    def _candidates(self, mask: bytes, is_first: bool) -> tuple[list[int], bool]:
        """The tokens that the search tries, in their order, and whether these are all that are allowed."""
        bits = np.frombuffer(mask, dtype=np.uint8)
        allowed = np.unpackbits(bits, count=len(self.cannot_begin), bitorder="little").view(bool)
        if is_first:
            allowed = allowed & ~self.cannot_begin
        tokens = np.flatnonzero(allowed)
        if len(tokens) > FEW:
            return self._different(self.single[allowed[self.single]].tolist()), False
        return sorted((token for token in tokens.tolist() if self.texts[token]), key=self._order), True

    def _different(self, single: list[int]) -> list[int]:
        """Some of the tokens of one byte."""
        counts: dict[float, int] = {}
        found = []
        for token in single:
            rank = self.ranks[(self.texts[token] or b"\0")[0]]
            counts[rank] = counts.get(rank, 0) + 1
            if rank not in (LETTER, DIGIT) or counts[rank] <= ALIKE:
                found.append(token)
        return found

    def _order(self, token: int) -> list[float]:
        found = self.orders.get(token)
        if found is None:
            ranks = [*map(self.ranks.__getitem__, self.texts[token] or b"")]
            found = self.orders[token] = [*ranks, WORD_ENDS if ranks[:1] == [LETTER] else TOKEN_ENDS]
        return found

    def _in_fewest_tokens(self, matcher: Any, witness: Witness, is_first: bool) -> Witness:
        """The same text in as few tokens as possible."""
        text = b"".join(self.texts[token] or b"" for token in witness[:-1])
        shorter = (*self.fewest(text, is_first), self.eos)
        is_right = len(shorter) > 1 and matcher.validate_tokens([*shorter]) == len(shorter)
        return shorter if is_right else witness

    def fewest(self, text: bytes, is_first: bool = False) -> Witness:
        """Return as few tokens as possible that write a text, or none if no tokens do."""
        best: list[tuple[int, int]] = [(0, -1)] * (len(text) + 1)  # the number of tokens from each place, the first one
        for begin in reversed(range(len(text))):
            ways = []
            for end in range(begin + 1, min(begin + LONGEST_TOKEN, len(text)) + 1):
                token = self.tokens.get(text[begin:end])
                if token is not None and not (is_first and begin == 0 and self.cannot_begin[token]):
                    ways.append((best[end][0] + 1, token))
            best[begin] = min(ways, default=(len(text) + 1, -1))
        found: list[int] = []
        at = 0
        while at < len(text):
            if best[at][1] < 0:
                return ()
            found.append(best[at][1])
            at += len(self.texts[found[-1]] or b"")
        return tuple(found)


def first_that_fits(matcher: Any, token: int, completions: Iterable[Witness]) -> Witness | None:
    """Return the first of some completions that goes on after a token, or None."""
    return next((rest for rest in completions if matcher.validate_tokens([token, *rest]) == len(rest) + 1), None)


def _after(matcher: Any, tokens: Witness, can_undo: bool) -> Iterator[tuple[Witness, bytes, Any]]:
    """Allowed tokens, and the mask and parser after them.

    The parser is the given one, which reads the tokens while they are tried, or a copy if it cannot take them back.
    """
    after = matcher if can_undo else matcher.deep_copy()
    if after.consume_tokens([*tokens]):
        yield tokens, after.compute_bitmask(), after
        if can_undo:
            matcher.rollback(len(tokens))


def _is_forced(mask: bytes) -> bool:
    """Whether only one token is allowed."""
    return int.from_bytes(mask, "little").bit_count() == 1


def _has(mask: bytes, token: int) -> bool:
    return bool(mask[token >> 3] >> (token & 7) & 1)
