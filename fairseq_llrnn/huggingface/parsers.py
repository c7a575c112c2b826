"""Grammars and JSON schemas under llguidance's parser: a weight of 1 or 0 for each token.

Masks come from llguidance as bits. Rows of the same bits are made once. If a text has to end within a number of tokens,
each state has a completion of its text (witnesses.py), and a token is allowed if one is found after it. Completions
that are found after one token are tried after the others, and at most MOST_SEARCHED tokens are searched.
"""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, need_library
from fairseq_llrnn.huggingface.byte_automata import Meter
from fairseq_llrnn.huggingface.regular_expressions import parse_regex, shortest_text
from fairseq_llrnn.huggingface.schema_lengths import Steps
from fairseq_llrnn.huggingface.schemas import unsupported_keywords
from fairseq_llrnn.huggingface.token_texts import TokenTexts
from fairseq_llrnn.huggingface.token_weights import DENSE, MOST_CACHED, Row, TokenWeights
from fairseq_llrnn.huggingface.witnesses import (
    MERGED,
    NODES,
    NODES_OF_RULES,
    Completions,
    Effort,
    Witness,
    first_that_fits,
)

ALL_TOKENISATIONS = '%llguidance {"no_forcing": true}'  # also of text that must come next
REPRESENTATIVES = 4  # of a group of tokens, which are alike
HINTS = 64  # regular expressions and strings of a grammar that give hints
LONGEST_HINT = 400  # characters
RULES = 64  # rules of a grammar that give hints, the last ones
RULE = re.compile(r"^[?!]?(\w+)(?:\.-?\d+)?\s*(?:\[[^\]\n]*\])?\s*:", re.MULTILINE)  # its name
# Lark's comments, strings and regular expressions
LARK = re.compile(
    r'//.*|(?P<string>"(?:[^"\\\n]|\\.)*")|/(?P<expression>(?:[^/\\\n]|\\.)+)/(?P<flags>[imsux]*)|#.*'
)
# what Rust and ECMA-262 have and Python has not: \x{61}, \u{61}, (?<name>…), \p{Lu}, \pL
RUST_SYNTAX = re.compile(r"\\[xu]\{([0-9a-fA-F]{1,6})\}|\(\?(<)(?![=!])|\\p(?:\{(\w\w?)[^}\s]*\}|(\w))|\\.")
CATEGORY_EXAMPLES = {"Lu": "A", "L": "a", "N": "0", "Z": " "}  # a character of \p{…}
MOST_SEARCHED = 256  # tokens after each of which a completion is searched for
MOST_SHARED = 16  # completions of these that are tried after the others


class _Tokens:
    """A tokenizer as llguidance reads one."""

    bos_token_id = None

    def __init__(self, texts: TokenTexts) -> None:
        self.eos_token_id = texts.eos
        # 0xFF, which no UTF-8 has, begins tokens without a text
        self.tokens = [b"\xff%d" % at if text is None else text for at, text in enumerate(texts.later)]
        self.special_token_ids = [at for at, text in enumerate(texts.later) if text is None]

    def __call__(self, text: bytes) -> list[int]:
        """Required by llguidance, which tokenises text only if it must come next, and then not with no_forcing."""
        raise NotImplementedError


@lru_cache(maxsize=4)
def _tokens_of(texts: TokenTexts) -> tuple[Any, Completions]:
    """Return llguidance's tokenizer, and a search for completions."""
    import llguidance

    pairs = zip(texts.first, texts.later, strict=True)
    cannot_begin = np.array([first != later and (first is None or later != b" " + first) for first, later in pairs])
    completions = Completions(texts.later, cannot_begin, texts.eos)
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Tokens(texts))), completions


def parser_weights(
    grammar: str, kind: str, texts: TokenTexts, meter: Meter, steps: Callable[[], Steps] = Steps, begin: str = "",
    end: str = "",
) -> ParserWeights:  # fmt: skip
    """Return the weights of a Lark grammar.

    Args:
        begin, end: the texts before and after that of the grammar.
        kind: of the user's input, for messages.
        steps: what is known of its steps. It is only called for texts that must end within a number of tokens.

    Raises:
        OptionError: llguidance is not installed. DataError: it does not read the grammar, or the limits are exceeded.
    """
    need_library(f"{meter.name}: {kind}", "llguidance", "hf")
    import llguidance

    tokenizer, completions = _tokens_of(texts)
    limits = llguidance.LLParserLimits(max_lexer_states=meter.limits.states)

    def read(grammar: str, begin: str = "", end: str = "") -> Any:
        grammars = [{"lark_grammar": f"{grammar}\n{ALL_TOKENISATIONS}"}]
        before, after = (json.dumps(text, ensure_ascii=False) if text else "" for text in (begin, end))
        if not begin and texts.first != texts.later:  # a space before the first word is not part of the text
            before = '" "?'
        if before or after:
            whole = f"start: {before} @text {after}\n{ALL_TOKENISATIONS}"
            grammars = [{"lark_grammar": whole}, {"name": "text", "lark_grammar": grammar}]
        return llguidance.LLMatcher(tokenizer, json.dumps({"grammars": grammars}), log_level=0, limits=limits)

    weights = ParserWeights(read(grammar, begin, end), completions, steps, grammar, read, meter.name, kind)
    if weights.matcher.is_error():
        raise parser_error(meter.name, kind, weights.matcher.get_error())
    weights.after = partial(parser_weights, grammar, kind, texts.inner, meter, steps)
    return weights


@dataclass
class ParserState:
    """A text under a parser, which changes with the next token."""

    matcher: Any
    is_first: bool = True
    left: int = 0  # tokens that may follow, the end among them, if there is a limit
    witness: Witness | None = None
    checked: dict[int, Witness | None] = field(default_factory=dict)  # a witness after some tokens
    # by the tokens that may follow: which ones end in time, (K,) bool, and completions that were found after some
    reach: dict[int, tuple[np.ndarray, list[Witness]]] = field(default_factory=dict)
    few: list[int] | None = None  # the allowed tokens, the longest first, or none if there are many

    def copy(self) -> ParserState:
        return replace(self, matcher=self.matcher.deep_copy())


class ParserWeights(TokenWeights[list[ParserState | None]]):
    """A grammar of llguidance. A state is None after the end."""

    after: Callable[[str], ParserWeights]  # the weights of texts that begin with a string

    def __init__(
        self, matcher: Any, completions: Completions, steps: Callable[[], Steps], grammar: str,
        read: Callable[[str], Any], name: str, kind: str,
    ) -> None:  # fmt: skip
        """
        Args:
            matcher: an LLMatcher at its beginning.
            steps, grammar: as in `parser_weights`.
            read: an LLMatcher of another Lark grammar for the same tokenizer.
            name, kind: of the user's input, for messages.
        """
        self.matcher, self.completions, self.grammar, self._read = matcher, completions, grammar, read
        self.steps = cache(steps)  # of copies, too
        self.name, self.kind = name, kind
        self.eos, self.cannot_begin = completions.eos, completions.cannot_begin
        self.num_tokens = len(self.cannot_begin)
        self.longest: int | None = None
        self.witness: Witness | None = None  # of the empty text
        self._rows: dict[tuple[bytes, bool, torch.device, torch.dtype], Row] = {}
        self._cached_bytes = 0

    def within(self, longest: int) -> ParserWeights:
        found = self.shortest
        limited = copy.copy(self)
        limited.longest, limited.witness = longest, found
        if found is None:
            raise DataError(
                f"{self.name}: longest: expected a {self.kind} for which a search finds a text, found none; leave "
                "`longest` out, or make it smaller"
            )
        return limited

    def without(self, lost: np.ndarray) -> ParserWeights:
        texts = self.completions.texts
        if not any(texts[token] for token in np.flatnonzero(lost)):
            return self
        left = copy.copy(self)
        kept = [None if is_lost else text for text, is_lost in zip(texts, lost.tolist(), strict=True)]
        left.completions = Completions(kept, self.cannot_begin, self.eos)
        for name in ("effort", "shortest", "groups"):
            left.__dict__.pop(name, None)
        if left.shortest is None and self.shortest is not None:
            raise ValueError("no text is found")
        return left

    @cached_property
    def shortest(self) -> Witness | None:
        """A short text. None: none is found."""
        return self.completions.search(self.matcher.deep_copy(), 1, is_first=True, effort=self.effort)

    @cached_property
    def effort(self) -> Effort:
        """How the grammar is searched."""
        nodes = NODES_OF_RULES if self._rules() else NODES
        can_undo = self.completions.can_undo(self.matcher)
        return Effort(cache(self._hints), cache(self._strings), nodes, can_undo)

    def _rules(self) -> list[str]:
        """The grammar's rules that rules contain, each as a grammar."""
        text = re.sub(r"\bstart\b", "whole_text", self.grammar)  # a rule of another name
        times = Counter(re.findall(r"\w+", text))
        names = [name for name in dict.fromkeys(RULE.findall(text)) if times[name] > 1]
        return [f"{text}\nstart: {name}" for name in names[-RULES:]]

    def _hints(self) -> list[Witness]:
        """Short texts of the grammar's rules, and shortest texts of its regular expressions."""
        found: dict[Witness, None] = {}
        effort = self.effort._replace(hints=lambda: [*found])
        rules = [*map(self._read, reversed(self._rules()))]
        for _ in range(2):  # rules usually follow those that contain them, but some do not
            matchers, rules = [rule for rule in rules if not rule.is_error()], []
            for matcher in matchers:
                witness = self.completions.short_text(matcher, effort)
                if witness is None:
                    rules.append(matcher)
                elif len(witness) > 1:
                    found[witness[:-1]] = None
        # what follows the first quote of a JSON string
        in_strings = [json.dumps(text, ensure_ascii=False)[1:] for text in self._shortest(self.steps().patterns)]
        flagged = [(match["flags"], match["expression"]) for match in self._lark() if match["expression"]]
        in_lark = self._shortest(f"(?{flags}){text}" if flags else text for flags, text in flagged)
        return [*dict.fromkeys([*found, *self._tokenise([*in_strings, *in_lark])])]

    def _lark(self) -> Iterator[re.Match[str]]:
        return iter(()) if self.kind == "JSON schema" else LARK.finditer(self.grammar)

    def _strings(self) -> list[Witness]:
        """The strings of a Lark grammar."""
        found: list[str] = []
        for match in self._lark():
            with suppress(ValueError):  # an escape that JSON does not have
                found += [json.loads(match["string"])] if match["string"] else []
        return self._tokenise(dict.fromkeys(found))

    def _tokenise(self, texts: Iterable[str]) -> list[Witness]:
        """The tokens of the first texts that are not empty."""
        return [*filter(None, (self.completions.fewest(text.encode()) for text in islice(texts, HINTS)))]

    def _shortest(self, expressions: Iterable[str]) -> Iterator[str]:
        """Shortest texts of the first regular expressions, in Rust's syntax."""
        for expression in islice(dict.fromkeys(expressions), HINTS):
            with suppress(DataError), warnings.catch_warnings():  # what Python's syntax has not
                warnings.simplefilter("ignore")
                if text := shortest_text(parse_regex(in_python(expression), self.name), LONGEST_HINT):
                    yield text

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """Groups of tokens that are alike inside of strings: as many plain characters, and no end of a key."""
        names, lengths = self.steps().names, self.completions.plain_lengths
        if names is None:
            return []
        ends = {name[at:] for name in names for at in range(len(name))}
        texts = self.completions.texts
        is_end = np.array([text in ends for text in texts])
        groups = [np.flatnonzero((lengths == length) & ~is_end) for length in range(1, int(lengths.max(initial=0)) + 1)]
        return [group for group in groups if len(group) > REPRESENTATIVES]

    def least(self, states: list[ParserState | None]) -> int:
        return max(1 if state is None or state.witness is None else len(state.witness) for state in states)

    def start(self, n: int) -> list[ParserState | None]:
        left = self.longest or 0
        return [ParserState(self.matcher.deep_copy(), True, left, self.witness) for _ in range(n)]

    def select(self, states: list[ParserState | None], rows: np.ndarray) -> list[ParserState | None]:
        taken: set[int] = set()
        found = []
        for row in rows.tolist():
            state = states[row]
            found.append(state.copy() if row in taken and state is not None else state)
            taken.add(row)
        return found

    def advance(self, states: list[ParserState | None], tokens: np.ndarray) -> list[ParserState | None]:
        """As TokenWeights. The parsers themselves change, so that the earlier states are not valid any more."""
        return [self._after(state, token) for state, token in zip(states, tokens.tolist(), strict=True)]

    def _after(self, state: ParserState | None, token: int) -> ParserState | None:
        if state is None or token in (self.eos, self.num_tokens) or (state.is_first and self.cannot_begin[token]):
            return None
        left, witness = state.left - 1, None
        if state.witness is not None and state.matcher.validate_tokens([token]):
            witness = self._witness_after(state, token)
            if witness is None or len(witness) > left:
                _, shared = self._reach(state, state.left)
                witness = first_that_fits(state.matcher, token, shared) or witness
        if not state.matcher.consume_token(token):
            if "too many states" in (error := state.matcher.get_error()):
                raise parser_error(self.name, self.kind, error)
            return None
        return ParserState(state.matcher, False, left, witness)

    def _witness_after(self, state: ParserState, token: int) -> Witness | None:
        if token not in state.checked and state.witness is not None:
            most, completions = state.left - 1, self.completions
            found = completions.known_after(state.matcher, token, state.witness, most)
            if found is None:
                found = self._by_longer_token(state, token, most)
            if found is None and (following := state.matcher.deep_copy()).consume_token(token):
                found = completions.search(following, most, state.witness, effort=self.effort)
            state.checked[token] = found
        return state.checked[token]

    def _by_longer_token(self, state: ParserState, token: int, most: int) -> Witness | None:
        """Return the rest of the longest allowed token that begins with this one, and a witness after it, or None."""
        if state.few is None:
            allowed = np.flatnonzero(self._allowed(state.matcher.compute_bitmask(), state.is_first))
            few = allowed.tolist() if len(allowed) <= MOST_SEARCHED else []
            state.few = sorted(few, key=lambda other: -len(self.completions.texts[other] or b""))
        text = self.completions.texts[token] or b""
        for longer in state.few:
            written = self.completions.texts[longer] or b""
            if len(written) > len(text) and written.startswith(text):
                following, rest = self._witness_after(state, longer), self.completions.fewest(written[len(text) :])
                if following is None or not rest or len(rest) + len(following) > most:
                    return None
                whole = [token, *rest, *following]
                return (*whole[1:],) if state.matcher.validate_tokens(whole) == len(whole) else None
        return None

    def in_reach(self, states: list[ParserState | None], remaining: int) -> list[np.ndarray | None]:
        return [None if state is None else self._reach(state, min(remaining, state.left))[0] for state in states]

    def _reach(self, state: ParserState, remaining: int) -> tuple[np.ndarray, list[Witness]]:
        """The tokens after which a text can end in time, (K,) bool, and completions that are found after some."""
        if remaining not in state.reach:
            state.reach[remaining] = self._searched(state, remaining)
        return state.reach[remaining]

    def _searched(self, state: ParserState, remaining: int) -> tuple[np.ndarray, list[Witness]]:
        witness, matcher = state.witness, state.matcher
        if witness is None or len(witness) > remaining:
            return np.zeros(self.num_tokens, dtype=bool), []
        allowed = self._allowed(matcher.compute_bitmask(), state.is_first)
        reached = allowed & (len(witness) + 1 + self.steps().largest * self.completions.num_opening <= remaining)
        reached[self.eos] = allowed[self.eos]
        size = len(witness) + 1
        inserted = [*witness]
        if size <= remaining and all(allowed[group].all() for group in self.groups):
            for group in self.groups:
                some = group[:: max(1, len(group) // REPRESENTATIVES)].tolist()
                if all(matcher.validate_tokens([token, *inserted]) == size for token in some):
                    reached[group] = True
        left = np.flatnonzero(allowed & ~reached).tolist()
        if size <= remaining:
            others = [token for token in left if matcher.validate_tokens([token, *inserted]) < size]
            reached[left] = True
            reached[others] = False
            left = others
        elif len(left) > MOST_SEARCHED:  # too little is left for most of them
            left = [token for token in left if self._contains_first_tokens(matcher, token, witness)]
        shared: list[Witness] = []
        searches = 0
        for token in sorted(left, key=lambda token: token != witness[0]):
            reached[token] = first_that_fits(matcher, token, shared) is not None
            if not reached[token] and searches < MOST_SEARCHED:
                searches += 1
                following = self._witness_after(state, token)
                if following is not None and len(following) < remaining:
                    reached[token] = True
                    shared += [following] * (len(shared) < MOST_SHARED)
        return reached, shared

    def _contains_first_tokens(self, matcher: Any, token: int, witness: Witness) -> bool:
        """Whether a witness without its first tokens goes on after a token."""
        rests = (witness[at:] for at in range(1, min(MERGED, len(witness) - 1) + 1))
        return token == witness[0] or first_that_fits(matcher, token, rests) is not None

    def can_end(self, states: list[ParserState | None], eos: int) -> bool:
        (state,) = states
        return state is not None and bool(state.matcher.is_accepting())

    def rows(self, states: list[ParserState | None], scores: Tensor) -> list[Row]:
        return [self._row(state, scores) for state in states]

    def _row(self, state: ParserState | None, scores: Tensor) -> Row:
        if state is None:
            return Row(scores.new_zeros(0, dtype=torch.long), None)
        matcher, is_first = state.matcher, state.is_first
        mask: bytes = matcher.compute_bitmask()
        if matcher.is_error():
            raise parser_error(self.name, self.kind, matcher.get_error())
        key = mask, is_first, scores.device, scores.dtype
        row = self._rows.get(key)
        if row is None:
            allowed = self._allowed(mask, is_first)
            tokens = np.flatnonzero(allowed)
            if len(tokens) == 0:
                raise parser_error(self.name, self.kind, "no token goes on")
            row = Row(torch.from_numpy(tokens).to(scores.device), None)
            if DENSE * len(tokens) > self.num_tokens:
                row = Row(None, row.dense(self.num_tokens, scores))
            self._cached_bytes += len(mask) + 8 * min(len(tokens), self.num_tokens) + 200
            if self._cached_bytes > MOST_CACHED:
                self._rows.clear()
                self._cached_bytes = 0
            self._rows[key] = row
        return row

    def _allowed(self, mask: bytes, is_first: bool) -> np.ndarray:
        """(K,) bool"""
        bits = np.unpackbits(np.frombuffer(mask, dtype=np.uint8), count=self.num_tokens, bitorder="little").view(bool)
        return bits & ~self.cannot_begin if is_first else bits


def in_python(expression: str) -> str:
    """Return a regular expression of Rust in Python's syntax, with one character for each category \\p{…}."""

    def changed(match: re.Match[str]) -> str:
        code, group = match.group(1, 2)
        category = match[3] or match[4]
        if code:
            return f"\\U{int(code, 16):08x}"
        if category:
            return CATEGORY_EXAMPLES.get(category, CATEGORY_EXAMPLES.get(category[0], "-"))
        return "(?P<" if group else match[0]

    return RUST_SYNTAX.sub(changed, expression)


def parser_error(name: str, kind: str, message: str) -> DataError:
    """Return the error of a grammar or schema (its kind) that llguidance does not read, or that costs too much."""
    first = message.strip().partition("\n")[0]
    first = re.sub(r"^at \d+\(\d+\): (failed to compile JSON schema: )?", "", first)
    if "NoExtension" in first or first == "no token goes on":
        return DataError(
            f"{name}: expected a token with which the text can go on, found none after what is written; use a "
            "tokenizer that has all characters of the grammar"
        )
    keywords = re.match(r"Unimplemented keys: \[(.*)\]", first)
    if keywords is not None:
        return unsupported_keywords([repr(key) for key in json.loads(f"[{keywords[1]}]")], name)
    if first.startswith("oneOf constraints are not supported"):
        return unsupported_keywords(["'oneOf' whose alternatives may both match (anyOf allows both)"], name)
    advice = "raise the limit with limits=Limits(states=…)" if "too many states" in first else "fix it"
    return DataError(
        f"{name}: expected a {kind} that llguidance reads within its limits, found: {first}; {advice}, or make it "
        "smaller"
    )
