"""Examples in batches, each of one objective; objectives alternate, as fairseq shuffles the batches of an epoch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset

from fairseq_llrnn.systems.discourse.data import LENGTH as LONG_EXAMPLE
from fairseq_llrnn.systems.discourse.data import Split


class DiscourseDataset(FairseqDataset):
    """The examples of some objectives, one objective after the other."""

    def __init__(
        self, split: Split, objectives: Sequence[str], max_words: int, pad: int, drawn: Mapping[str, int] | None
    ) -> None:
        """
        Args:
            max_words: of a sentence; those behind are not read.
            drawn: how many examples of each objective an epoch of training has, drawn anew in each; None: no training,
                all examples, in their order.
        """
        self.split, self.objectives, self.max_words, self.pad = split, list(objectives), max_words, pad
        self.drawn = drawn
        self.begins = np.cumsum([0, *(len(split.examples[name]) for name in objectives)])
        lengths = np.minimum(split.lengths(), max_words)
        # what an example takes of --max-tokens: its sentences, each as long as the longest of them
        self.sizes = np.concatenate(
            [
                (rows.shape[1] - 1) * lengths[rows[:, :-1]].max(1, initial=0)
                for rows in (split.examples[name] for name in objectives)
            ]
        )

    def __len__(self) -> int:
        return int(self.begins[-1])

    def __getitem__(self, index: int) -> dict[str, Any]:
        which = int(np.searchsorted(self.begins, index, side="right")) - 1
        row = self.split.examples[self.objectives[which]][index - self.begins[which]]
        sentences = [self.split.sentence(number)[: self.max_words] for number in row[:-1]]
        return {"id": index, "objective": self.objectives[which], "sentences": sentences, "answer": int(row[-1])}

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """src_tokens (B, sentences of an example, L), padded on the right, and the answers (B,)."""
        if not samples:
            return {}
        longest = max(len(sentence) for sample in samples for sentence in sample["sentences"])
        tokens = np.full((len(samples), len(samples[0]["sentences"]), longest), self.pad, dtype=np.int64)
        for i, sample in enumerate(samples):
            for j, sentence in enumerate(sample["sentences"]):
                tokens[i, j, : len(sentence)] = sentence
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "objective": samples[0]["objective"],
            "net_input": {"src_tokens": torch.from_numpy(tokens)},
            "target": torch.tensor([sample["answer"] for sample in samples]),
            "ntokens": sum(len(sentence) for sample in samples for sentence in sample["sentences"]),
            "nsentences": len(samples),
        }

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """In training, so many of each objective, examples of about one size side by side; fairseq sets the seed."""
        if self.drawn is None:
            return np.arange(len(self))
        parts = []
        for name, begin, end in zip(self.objectives, self.begins, self.begins[1:], strict=False):
            chosen = begin + np.random.permutation(end - begin)[: self.drawn[name]]
            parts.append(chosen[np.argsort(self.sizes[chosen], kind="stable")])
        return np.concatenate(parts)

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """As fairseq's, for each objective by itself. --batch-size counts pairs: of NEXT, a quarter as many.

        No multiple of a batch's size is required: fairseq would leave out what is left over, and of CONJUNCTION, of
        which there are few, that is much.
        """
        batches: list[np.ndarray] = []
        which = np.searchsorted(self.begins, indices, side="right") - 1
        for i, name in enumerate(self.objectives):
            of_objective = indices[which == i]
            room = max_sentences
            if room is not None and name == "next":
                room = max(1, 2 * room // LONG_EXAMPLE)
            if len(of_objective):
                batches.extend(super().batch_by_size(of_objective, max_tokens, room))
        return batches
