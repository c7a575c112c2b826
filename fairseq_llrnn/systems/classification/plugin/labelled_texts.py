"""Texts with labels, as a classifier trains on them: a row of the loss for each pair of a text and one of its labels.

Sizes: n texts, B texts of a batch, L words of the longest one with </s>, P pairs of a batch. Labels that the
dictionary lacks are <unk>: nothing can be learnt of them, but who counts right answers should know that they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from torch import Tensor

ALL, ONE = "all", "one"  # how many labels of a text an epoch of training sees
STREAM = 5  # its random numbers are others than those of other data


@dataclass(frozen=True)
class Labels:
    """The labels of n texts, those of text i at offsets[i] … offsets[i + 1] − 1; <unk> is none of them."""

    offsets: np.ndarray  # (n + 1,)
    ids: np.ndarray
    unseen: np.ndarray  # (n,) how many more each text has that the dictionary lacks

    @classmethod
    def read(cls, lines: Sequence[Tensor], dictionary: Dictionary) -> Labels:
        """lines: each of labels and perhaps </s>, as fairseq-preprocess writes them; one given twice counts once."""
        rows = [np.unique(line[line != dictionary.eos()].numpy()) for line in lines]
        num_labels = [row[row != dictionary.unk()] for row in rows]
        unseen = np.array([int((line == dictionary.unk()).sum()) for line in lines], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in num_labels])]).astype(np.int64)
        return cls(offsets, np.concatenate([*num_labels, np.empty(0, dtype=np.int64)]).astype(np.int64), unseen)

    def __len__(self) -> int:
        return len(self.unseen)

    def of(self, index: int) -> np.ndarray:
        """Those of a text that the dictionary has."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def num_labels(self) -> np.ndarray:
        """(n,) how many labels of each text the dictionary has."""
        return np.diff(self.offsets)


class LabelledTexts(FairseqDataset):
    """Texts and their labels in fairseq's batches.

    A batch's `net_input` holds src_tokens (B, L), padded on the right, src_lengths (B,), text_of (P,), the row of each
    pair's text, and prev_output_tokens (P, 1), </s> before each label; `target` (P, 1) are the labels, `id` (P,) the
    numbers of their texts, and `gold` a list of the B texts' labels and `gold_unseen` (B,) how many more each has.
    Where the dictionary has none of the B texts' labels, the only pair is of padding, which counts nothing.
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
            texts: of n words each, with </s>. sizes: (n,) their lengths. dictionary: of their words.
            eos: the </s> of the labels' dictionary. kept: the numbers of the texts that are looked at.
            seed: of the label that each epoch draws of each text; None: all of them.
        """
        self.texts, self.labels, self.dictionary, self.eos = texts, labels, dictionary, eos
        self.kept, self.sizes = kept, sizes[kept]
        self.seed, self.epoch = seed, 1

    def set_epoch(self, epoch: int) -> None:
        """Other labels are drawn in each."""
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
        many = [len(sample["labels"]) for sample in samples]
        text_of = torch.repeat_interleave(torch.arange(len(samples)), torch.tensor(many))
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
        """What --max-tokens counts: the words of the text."""
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """Texts of one length beside each other, otherwise at random (fairseq seeds numpy before)."""
        order = np.random.permutation(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]
