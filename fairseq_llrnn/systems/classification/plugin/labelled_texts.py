"""Texts with labels as training data: a row of the loss for each pair of a text and one of its labels.

Sizes: n texts, B texts of a batch, L words of the longest one including </s>, P pairs of a batch. Labels missing in the
dictionary are <unk>. They cannot be learned, but they count in the evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from torch import Tensor

ALL, ONE = "all", "one"  # labels of a text in an epoch of training
STREAM = 5  # of random numbers, independent of other data


@dataclass(frozen=True)
class Labels:
    """The labels of n texts, those of text i at offsets[i] … offsets[i + 1] − 1, without <unk>."""

    offsets: np.ndarray  # (n + 1,)
    ids: np.ndarray
    unseen: np.ndarray  # (n,) number of further labels, missing in the dictionary

    @classmethod
    def read(cls, lines: Sequence[Tensor], dictionary: Dictionary) -> Labels:
        """Read lines of labels and optionally </s>, as written by fairseq-preprocess. Repeated labels count once."""
        rows = [np.unique(line[line != dictionary.eos()].numpy()) for line in lines]
        num_labels = [row[row != dictionary.unk()] for row in rows]
        unseen = np.array([int((line == dictionary.unk()).sum()) for line in lines], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in num_labels])]).astype(np.int64)
        return cls(offsets, np.concatenate([*num_labels, np.empty(0, dtype=np.int64)]).astype(np.int64), unseen)

    def __len__(self) -> int:
        return len(self.unseen)

    def of(self, index: int) -> np.ndarray:
        """Return the labels of a text that are in the dictionary."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def num_labels(self) -> np.ndarray:
        """Return the number of labels in the dictionary for each text, (n,)."""
        return np.diff(self.offsets)


class LabelledTexts(FairseqDataset):
    """Texts and their labels in fairseq's batches.

    `net_input` of a batch has src_tokens (B, L), padded on the right, src_lengths (B,), text_of (P,), the row of each
    pair's text, and prev_output_tokens (P, 1), </s> before each label. `target` (P, 1) are the labels, `id` (P,) the
    numbers of their texts, `gold` a list of the B texts' labels, and `gold_unseen` (B,) the numbers of unseen ones. If
    the dictionary has none of the labels, the only pair is padding, which does not count.
    """

    def __init__(
        self,
        texts: Sequence[Tensor],
        sizes: np.ndarray,
        labels: Labels,
        dictionary: Dictionary,
        eos: int,
        kept: np.ndarray,
        seed: int | None = None,
    ) -> None:
        """
        Args:
            texts: n texts, with </s>.
            sizes: (n,) their lengths.
            dictionary: of their words.
            eos: the </s> of the labels' dictionary.
            kept: the numbers of the texts to use.
            seed: of the label sampled for each text in an epoch (None: all labels).
        """
        self.texts, self.labels, self.dictionary, self.eos = texts, labels, dictionary, eos
        self.kept, self.sizes = kept, sizes[kept]
        self.seed, self.epoch = seed, 1

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the sampled labels."""
        self.epoch = epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return self.seed is None

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> dict[str, Any]:
        number = int(self.kept[index])
        gold = self.labels.of(number)
        drawn = gold
        if self.seed is not None and len(gold) > 1:
            random = np.random.default_rng((self.seed, self.epoch, number, STREAM))
            drawn = gold[[random.integers(len(gold))]]
        unseen = int(self.labels.unseen[number])
        return {"id": number, "source": self.texts[number], "labels": drawn, "gold": gold, "unseen": unseen}

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        if not samples:
            return {}
        tokens = data_utils.collate_tokens([sample["source"] for sample in samples], self.dictionary.pad())
        num_labels = [len(sample["labels"]) for sample in samples]
        text_of = torch.repeat_interleave(torch.arange(len(samples)), torch.tensor(num_labels))
        target = torch.from_numpy(np.concatenate([sample["labels"] for sample in samples])).unsqueeze(1)
        pairs = len(target)
        if not pairs:
            text_of, target = torch.tensor([0]), torch.tensor([[self.dictionary.pad()]])
        return {
            "id": torch.tensor([sample["id"] for sample in samples])[text_of],
            "nsentences": len(samples),
            "ntokens": pairs,
            "net_input": {
                "src_tokens": tokens.long(),
                "src_lengths": torch.tensor([len(sample["source"]) for sample in samples]),
                "prev_output_tokens": torch.full_like(target, self.eos),
                "text_of": text_of,
            },
            "target": target,
            "gold": [torch.from_numpy(sample["gold"]) for sample in samples],
            "gold_unseen": torch.tensor([sample["unseen"] for sample in samples]),
        }

    def num_tokens(self, index: int) -> int:
        """Return the words of the text, the size for --max-tokens."""
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """Return texts sorted by length, in random order within a length (fairseq seeds numpy before)."""
        order = np.random.permutation(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]
