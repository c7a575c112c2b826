"""The bytes of the tokens of a tokenizer.

They are compared as `tokenizer.decode` writes them, without its clean-up of spaces:

    ByteLevel BPE            a token is bytes, also a part of a character
    SentencePiece, Metaspace ▁ is a space, <0x41> a byte. No space before the first word
    WordPiece                ##x continues a word, and any other token but the first one begins with a space

Special tokens match no text.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.huggingface.byte_automata import BYTES


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
