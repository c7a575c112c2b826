"""Compute a model's log-probability of every token of a text, in nats.

Sizes: B sentences of a batch, T positions, N tokens of the text with their </s>.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

from fairseq_llrnn.plugin.compat.loading import build_model, encode, read_checkpoint

POSITIONS = 2048  # of a batch, padding included


@torch.inference_mode()
def token_log_probs(checkpoint: Path, text: Path) -> np.ndarray:
    """Return log p of every token and every </s> of a text, (N,) float64, in the order of the text."""
    torch.set_num_threads(1)
    model, task = build_model(str(checkpoint), read_checkpoint(str(checkpoint)))
    model.eval()
    dictionary: Any = task.source_dictionary
    lines = text.read_text(encoding="utf-8").splitlines()
    sentences = [encode(dictionary, line.split()) for line in lines]
    found: dict[int, np.ndarray] = {}
    for batch in _batches(sentences):
        target = data_utils.collate_tokens([sentences[i] for i in batch], dictionary.pad())  # shape: (B, T)
        previous = target.roll(1, dims=1)
        previous[:, 0] = dictionary.eos()
        hidden, extra = model.decoder(previous)
        log_probs = model.decoder.head.target_log_probs(extra["batch"], target).double().numpy()
        found |= {i: log_probs[row, : len(sentences[i])] for row, i in enumerate(batch)}
    return np.concatenate([found[i] for i in range(len(sentences))])


def _batches(sentences: Sequence[Tensor]) -> Iterator[list[int]]:
    batch: list[int] = []
    for number in sorted(range(len(sentences)), key=lambda i: len(sentences[i])):
        if batch and (len(batch) + 1) * len(sentences[number]) > POSITIONS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
