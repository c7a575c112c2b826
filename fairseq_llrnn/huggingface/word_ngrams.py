"""An n-gram model over words as weights of tokens, with look-ahead inside words.

A text has the weight of its words: b(text) = p(w_1 … w_n </s>). Whitespace separates words, and a word that the model
does not have is <unk>. After a part of a text, let h be its complete words and u the beginning of the next one:

    Φ(h, u) = Σ p(w | h) over the words w that begin with u  +  p(<unk> | h)

A token is worth the ratio of p(complete words) Φ(h, u) after and before it. The weights of all tokens of a text
multiply to the text's weight divided by the constant Φ(start, "") = 1 − p(</s>). A beam search sees what a beginning
can become, as in the look-ahead of decoders for speech (Ortmanns, Ney and Eiden 1996).

Sizes: K tokens, V words, U nodes of the words' trie. Node U stands for the beginnings that no word has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, BoundBackground
from fairseq_llrnn.features.dictionary import EOS, SPECIALS, UNK
from fairseq_llrnn.huggingface.byte_automata import BYTES
from fairseq_llrnn.huggingface.token_texts import TokenTexts, Trie
from fairseq_llrnn.huggingface.token_weights import MOST_CACHED, Row, TokenWeights

WHITESPACE = b" \t\n\r\v\f"


class _Words:
    """The spellings of words: their trie, and the probabilities below each node."""

    def __init__(self, symbols: Sequence[str]) -> None:
        """symbols: (V,), the special ones first."""
        trie = Trie([None if at < len(SPECIALS) else word.encode() for at, word in enumerate(symbols)], False)
        self.size = len(trie.own)  # U
        self.unk = symbols.index(UNK)
        self.parents = np.repeat(np.arange(self.size), np.diff(trie.children))  # of nodes 1 … U − 1
        self.keys = np.append(self.parents * BYTES + trie.bytes[1:], np.iinfo(np.int64).max)
        self.word_of = np.full(self.size + 1, self.unk)
        ends = trie.own[:, 1] > trie.own[:, 0]
        self.word_of[:-1][ends] = trie.tokens[trie.own[ends, 0]]
        self.ends = np.flatnonzero(ends)
        self.levels = [(0, 1)]  # nodes by depth
        while self.levels[-1][1] < self.size:
            end = self.levels[-1][1]
            self.levels.append((end, int(trie.children[end])))

    def after(self, nodes: np.ndarray, letters: np.ndarray) -> np.ndarray:
        """Return the nodes after a byte each, (M,)."""
        wanted = nodes * BYTES + letters
        places = self.keys.searchsorted(wanted)
        return np.where(self.keys[places] == wanted, places + 1, self.size)

    def spell(self, node: int, text: bytes) -> int:
        """Return the node after some bytes."""
        for letter in text:
            node = int(self.after(np.array(node), np.array(letter)))
        return node

    def potentials(self, log_p: np.ndarray) -> np.ndarray:
        """Return log Φ of each node, (U + 1,), of log p of the next word, (V,)."""
        p = np.zeros(self.size)
        p[self.ends] = np.exp(log_p[self.word_of[self.ends]])
        for begin, end in reversed(self.levels[1:]):
            np.add.at(p, self.parents[begin - 1 : end - 1], p[begin:end])
        with np.errstate(divide="ignore"):
            return np.log(np.append(p, 0.0) + np.exp(log_p[self.unk]))


class _History(NamedTuple):
    """The complete words of a text, as the n-gram model remembers them."""

    state: Tensor
    log_p: np.ndarray  # of the next word, (V,)
    potentials: np.ndarray  # log Φ, (U + 1,)


class _Spellings:
    """The tokens of a tokenizer, at the beginning of a text or later, by where they have whitespace."""

    def __init__(self, texts: Sequence[bytes | None], words: _Words) -> None:
        inner, self.mixed = [], []  # tokens without whitespace, and with whitespace after other bytes
        separate = []  # tokens that begin with whitespace and have one word at most
        for token, text in enumerate(texts):
            if text is None:
                continue
            if not any(byte in WHITESPACE for byte in text):
                inner.append(token)
            elif text[0] in WHITESPACE and len(text.split()) < 2 and text.strip() == text.lstrip():
                separate.append(token)
            else:
                self.mixed.append(token)
        self.inner, self.separate = np.array(inner, dtype=np.int64), np.array(separate, dtype=np.int64)
        spelled = [text or b"" for text in texts]
        self.tails = np.array([words.spell(0, spelled[token].lstrip()) for token in separate], dtype=np.int64)
        self.lengths = np.array([len(spelled[token]) for token in inner], dtype=np.int64)
        self.letters = np.zeros((int(self.lengths.max(initial=0)), len(inner)), dtype=np.uint8)
        for column, token in enumerate(inner):
            self.letters[: len(spelled[token]), column] = list(spelled[token])
        self.words, self.cache = words, dict[int, np.ndarray]()

    def nodes(self, node: int) -> np.ndarray:
        """Return the nodes after each token without whitespace."""
        found = self.cache.get(node)
        if found is None:
            if 8 * len(self.cache) * len(self.inner) > MOST_CACHED:
                self.cache.clear()
            found = np.full(len(self.inner), node)
            left = np.arange(len(self.inner)) if node < self.words.size else np.zeros(0, dtype=np.int64)
            for depth, letters in enumerate(self.letters):
                left = left[(self.lengths[left] > depth) & (found[left] < self.words.size)]
                found[left] = self.words.after(found[left], letters[left])
            self.cache[node] = found
        return found


State = tuple[_History, int, bool] | None  # complete words, node of the next one, whether nothing is written; the end


class WordNGramWeights(TokenWeights[list[State]]):
    """An n-gram model over words (module docstring)."""

    def __init__(self, model: BoundBackground, symbols: Sequence[str], texts: TokenTexts, weight: float) -> None:
        """
        Args:
            model: b = p of the next word or </s>, (V,).
            weight: λ of b(text) = p(text)^λ.
        """
        self.model, self.weight, self.texts, self.num_tokens = model, weight, texts, texts.size
        self.words, self.end = _Words(symbols), symbols.index(EOS)
        later = _Spellings(texts.later, self.words)
        self.spellings = later, later if texts.first == texts.later else _Spellings(texts.first, self.words)
        self.histories: dict[bytes, _History] = {}

    def _history(self, state: Tensor) -> _History:
        key = state.numpy().tobytes()
        found = self.histories.get(key)
        if found is None:
            if 8 * len(self.histories) * (self.words.size + len(self.model.class_of)) > MOST_CACHED:
                self.histories.clear()
            log_p = self.model.view(state).log_weights[0].double().numpy()
            found = self.histories[key] = _History(state, log_p, self.words.potentials(log_p))
        return found

    def _completed(self, history: _History, node: int) -> tuple[float, _History]:
        """Return log p of the word that ends at a node, and the history with it. At the root there is none."""
        if node == 0:
            return 0.0, history
        word = int(self.words.word_of[node])
        return float(history.log_p[word]), self._history(self.model.advance(history.state, torch.tensor([word])))

    def _read(self, history: _History, node: int, text: bytes) -> tuple[float, _History, int]:
        """Return log p of the words that a text completes, and what follows them."""
        total = 0.0
        for letter in text:
            if letter in WHITESPACE:
                log_p, history = self._completed(history, node)
                total, node = total + log_p, 0
            elif node < self.words.size:
                node = self.words.spell(node, bytes([letter]))
        return total, history, node

    def start(self, n: int) -> list[State]:
        return [(self._history(self.model.start(1)), 0, True)] * n

    def select(self, states: list[State], rows: np.ndarray) -> list[State]:
        return [states[row] for row in rows.tolist()]

    def advance(self, states: list[State], tokens: np.ndarray) -> list[State]:
        found: list[State] = []
        for state, token in zip(states, tokens.tolist(), strict=True):
            text = None
            if state is not None and token < self.num_tokens:
                text = self.texts.text([token], state[2])
            found.append(None if state is None or text is None else (*self._read(state[0], state[1], text)[1:], False))
        return found

    def rows(self, states: list[State], scores: Tensor) -> list[Row]:
        none = Row(scores.new_zeros(0, dtype=torch.long), None)
        return [none if state is None else self._row(*state, scores) for state in states]

    def _row(self, history: _History, node: int, is_first: bool, scores: Tensor) -> Row:
        spellings = self.spellings[is_first]
        log_b = np.full(self.num_tokens, NEGATIVE_INFINITY)
        log_b[spellings.inner] = history.potentials[spellings.nodes(node)]
        completed, after = self._completed(history, node)
        log_b[spellings.separate] = completed + after.potentials[spellings.tails]
        for token in spellings.mixed:
            log_p, later, last = self._read(history, node, self.texts.text([token], is_first) or b"")
            log_b[token] = log_p + later.potentials[last]
        log_b[self.texts.eos] = completed + after.log_p[self.end]
        return Row(None, torch.from_numpy(self.weight * (log_b - history.potentials[node])).to(scores))
