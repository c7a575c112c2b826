"""The part of the novels, its prior, and batches of its sentences.

Sizes: B sentences of a batch, T their length.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from fairseq_llrnn import Prior
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

POOL = 100  # batches from whose sentences those of similar length go together
PART_OF_NOVELS = Path(__file__).resolve().parents[3] / "examples" / "languages" / "part_of_novels.py"


def prepare(novels: Path, out: Path, every: int) -> None:
    """Write the part of the novels with its whole vocabulary, and the prior: every word separate, over the unigram."""
    part = [sys.executable, str(PART_OF_NOVELS), str(novels), str(out), "--every", str(every)]
    if subprocess.run([*part, "--words", "10000000"], check=False).returncode:
        raise DataError(f"{novels}: expected train.txt.gz, valid.txt.gz and test.txt.gz; see the message above")
    options = Recipe(text=out / "train.txt", top_words="all")
    build_prior(out / "dict.txt", options).save(out / "prior")


@dataclass(frozen=True)
class Text:
    """Sentences as numbers, with `</s>` after each."""

    sentences: list[Tensor]
    eos: int
    pad: int
    unk: int

    @classmethod
    def read(cls, path: Path, prior: Prior) -> Text:
        index = {symbol: i for i, symbol in enumerate(prior.symbols)}
        eos, pad, unk = (index[symbol] for symbol in ("</s>", "<pad>", "<unk>"))
        with open(path, encoding="utf-8") as stream:
            rows = [torch.tensor([*(index.get(word, unk) for word in line.split()), eos]) for line in stream]
        return cls(rows, eos, pad, unk)

    def batches(self, size: int, seed: int | None = None) -> list[list[int]]:
        """Yield sentences with about `size` targets per batch, in the same order for every model. Without a seed: in
        text order.
        """
        order = torch.arange(len(self.sentences))
        if seed is not None:
            order = torch.randperm(len(order), generator=torch.Generator().manual_seed(seed))
        pool = POOL * size // 20
        found: list[list[int]] = []
        for part in order.split(pool):
            batch: list[int] = []
            total = 0
            for i in sorted(part.tolist(), key=lambda i: len(self.sentences[i])):
                if total + len(self.sentences[i]) > size and batch:
                    found.append(batch)
                    batch, total = [], 0
                batch.append(i)
                total += len(self.sentences[i])
            found.append(batch)
        if seed is None:
            return found
        shuffled = torch.randperm(len(found), generator=torch.Generator().manual_seed(seed))
        return [found[i] for i in shuffled.tolist()]

    def padded(self, batch: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return inputs and targets, (B, T)."""
        targets = nn.utils.rnn.pad_sequence([self.sentences[i] for i in batch], True, self.pad)
        return torch.cat([torch.full_like(targets[:, :1], self.eos), targets[:, :-1]], 1), targets
