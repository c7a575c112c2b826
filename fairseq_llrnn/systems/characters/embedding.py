"""An embedding that reads words by their characters, in the place of a table with a row per word.

Sizes: V words, K different words, h filters, D width of the result (h unless the options have a size).
Ids from V on are strings that the dictionary lacks (features/dictionary.py): they have characters like any word.

    read = CharacterEmbedding(prior.session.target, CharacterOptions())
    vectors = read(tokens)                                                   # (…,) -> (…, D)

The vector of a word does not depend on the context, so a batch computes one for each different word in it. Where no
gradient is kept and the module does not train, vectors are kept until weights change (kept_rows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.systems.characters.kept_rows import KeptRows, state_of
from fairseq_llrnn.systems.characters.network import CharacterNetwork, CharacterOptions
from fairseq_llrnn.systems.characters.spellings import Spellings

AT_ONCE = 4096  # words, where no gradient is kept


class CharacterEmbedding(nn.Module):
    """Ids of words -> vectors (module docstring)."""

    reads_strings = True  # those outside the dictionary are more than <unk> to it

    def __init__(self, words: OpenWords, options: CharacterOptions, padding_idx: int | None = None) -> None:
        """words: of either side of a prior's session. padding_idx: the id whose vector is zero; None: there is none."""
        super().__init__()
        self.spellings = Spellings(words)
        self.network = CharacterNetwork(self.spellings.num_symbols, options)
        self.embedding_dim = options.output_size  # D; the names are torch's, which fairseq's encoders ask for
        self.padding_idx = padding_idx
        self._kept: KeptRows | None = None

    @property
    def words(self) -> OpenWords:
        """Whose ids it reads."""
        return self.spellings.words

    def forward(self, tokens: Tensor) -> Tensor:
        """(…,) -> (…, D)"""
        different, place = tokens.unique(return_inverse=True)
        vectors = functional.embedding(place, self.vectors(different))
        return vectors if self.padding_idx is None else vectors * tokens.ne(self.padding_idx).unsqueeze(-1)

    def vectors(self, ids: Tensor) -> Tensor:
        """Of different words: (K,) -> (K, D)."""
        if self.training or torch.is_grad_enabled():
            return self._read(*self.spellings.rows(ids.cpu().numpy()))
        state = state_of(self.parameters())
        if self._kept is None or self._kept.state != state:
            self._kept = KeptRows(state)
        dtype = self.network.embedding.weight.dtype  # autocast must not decide what is kept
        return self._kept.of(ids, lambda missing: self._in_parts(missing).to(dtype))

    def before_and_after(self, strings: Sequence[str]) -> tuple[Tensor, Tensor]:
        """What the filters find in any strings, known or not, before the highway, and their vectors: (K, h), (K, D)."""
        starts = range(0, max(1, len(strings)), AT_ONCE)
        parts = [self._tensors(*self.spellings.rows_of(strings[start : start + AT_ONCE])) for start in starts]
        before = torch.cat([self.network.before_layers(*part) for part in parts])
        return before, self.network.after_filters(before)

    def train(self, mode: bool = True) -> CharacterEmbedding:
        if mode:
            self._kept = None
        super().train(mode)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take the weights' alphabet, of which older checkpoints have another (spellings.py)."""
        weight = state_dict.get(f"{prefix}network.embedding.weight")
        if isinstance(weight, Tensor) and len(weight) != self.spellings.num_symbols:
            for spare_whole_words in (True, False):
                spellings = Spellings(self.spellings.words, spare_whole_words)
                if spellings.num_symbols == len(weight):  # one alphabet has the other, so that sizes tell them apart
                    self.spellings, self._kept = spellings, None
                    self.network.resize_alphabet(len(weight))
                    break
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _in_parts(self, ids: Tensor) -> Tensor:
        parts = [self.spellings.rows(part.cpu().numpy()) for part in ids.split(AT_ONCE)]
        return torch.cat([self._read(*part) for part in parts])

    def _read(self, symbols: np.ndarray, lengths: np.ndarray) -> Tensor:
        read: Tensor = self.network(*self._tensors(symbols, lengths))
        return read

    def _tensors(self, symbols: np.ndarray, lengths: np.ndarray) -> tuple[Tensor, Tensor]:
        device = self.network.embedding.weight.device
        return torch.from_numpy(symbols).to(device), torch.from_numpy(lengths).to(device)
