"""Grammars and JSON schemas under llguidance's parser: a weight of 1 or 0 for each token.

A state is a parser, None after the end. Masks come from llguidance as bits. Rows of the same bits are made once.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, need_library
from fairseq_llrnn.huggingface.lifting import Meter, TokenTexts
from fairseq_llrnn.huggingface.schemas import unsupported_keywords
from fairseq_llrnn.huggingface.token_weights import DENSE, MOST_CACHED, Row, TokenWeights

ALL_TOKENISATIONS = '%llguidance {"no_forcing": true}'  # also of text that must come next


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


@lru_cache(maxsize=2)
def _tokens_of(texts: TokenTexts) -> tuple[Any, np.ndarray]:
    """Return llguidance's tokenizer, and the tokens that have another text at the beginning, (K,) bool."""
    import llguidance

    pairs = zip(texts.first, texts.later, strict=True)
    cannot_begin = np.array([first != later and (first is None or later != b" " + first) for first, later in pairs])
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Tokens(texts))), cannot_begin


def parser_weights(grammar: str, kind: str, texts: TokenTexts, meter: Meter) -> ParserWeights:
    """Return the weights of a Lark grammar.

    Args:
        kind: of the user's input, for messages.

    Raises:
        OptionError: llguidance is not installed. DataError: it does not read the grammar, or the limits are exceeded.
    """
    need_library(f"{meter.name}: {kind}", "llguidance", "hf")
    import llguidance

    tokenizer, cannot_begin = _tokens_of(texts)
    limits = llguidance.LLParserLimits(max_lexer_states=meter.limits.states)
    grammars = [{"lark_grammar": f"{grammar}\n{ALL_TOKENISATIONS}"}]
    if texts.first != texts.later:  # a space before the first word is not part of the text
        whole = f'start: " "? @text\n{ALL_TOKENISATIONS}'
        grammars = [{"lark_grammar": whole}, {"name": "text", "lark_grammar": grammar}]
    matcher = llguidance.LLMatcher(tokenizer, json.dumps({"grammars": grammars}), log_level=0, limits=limits)
    if matcher.is_error():
        raise parser_error(meter.name, kind, matcher.get_error())
    return ParserWeights(matcher, cannot_begin, texts.eos, meter.name, kind)


class ParserWeights(TokenWeights[list[Any]]):
    """A grammar of llguidance. A state is a parser and whether it is at the beginning, None after the end."""

    has_distances = False

    def __init__(self, matcher: Any, cannot_begin: np.ndarray, eos: int, name: str, kind: str) -> None:
        """
        Args:
            matcher: an LLMatcher at its beginning, without an error.
            cannot_begin: (K,) bool, tokens that have another text at the beginning.
            name, kind: of the user's input, for messages.
        """
        self.matcher, self.cannot_begin, self.eos = matcher, cannot_begin, eos
        self.name, self.kind = name, kind
        self.num_tokens = len(cannot_begin)
        self._rows: dict[tuple[bytes, bool, torch.device, torch.dtype], Row] = {}
        self._cached_bytes = 0

    def start(self, n: int) -> list[Any]:
        return [(self.matcher.deep_copy(), True) for _ in range(n)]

    def select(self, states: list[Any], rows: np.ndarray) -> list[Any]:
        taken: set[int] = set()
        found = []
        for row in rows.tolist():
            state = states[row]
            found.append((state[0].deep_copy(), state[1]) if row in taken and state is not None else state)
            taken.add(row)
        return found

    def advance(self, states: list[Any], tokens: np.ndarray) -> list[Any]:
        """As TokenWeights. The parsers themselves change, so that the earlier states are not valid any more."""
        found: list[Any] = []
        for state, token in zip(states, tokens.tolist(), strict=True):
            ends = state is None or token in (self.eos, self.num_tokens)
            ends = ends or (state[1] and self.cannot_begin[token])
            if not ends and not state[0].consume_token(token):
                ends = True
                if "too many states" in (error := state[0].get_error()):
                    raise parser_error(self.name, self.kind, error)
            found.append(None if ends else (state[0], False))
        return found

    def rows(self, states: list[Any], scores: Tensor) -> list[Row]:
        return [self._row(state, scores) for state in states]

    def _row(self, state: Any, scores: Tensor) -> Row:
        if state is None:
            return Row(scores.new_zeros(0, dtype=torch.long), None)
        matcher, is_first = state
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
