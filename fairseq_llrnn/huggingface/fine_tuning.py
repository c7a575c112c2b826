"""Fine-tune a causal network of transformers with its own tokenizer, the usual way, as a baseline of `llrnn compare`.

AdamW, all weights, a warm-up, then a constant rate. The validation text chooses the number of epochs. Sentences are
single, as in scoring.py, whose probabilities the loss is of.

Sizes: R rows of a batch, T tokens, K tokens of the model.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn import functional

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import sum_of, together
from fairseq_llrnn.files.atomic_write import whole_folder
from fairseq_llrnn.huggingface.loading import load_scorer
from fairseq_llrnn.huggingface.scoring import CausalScorer

MAX_TOKENS = 512  # of a batch, padding included
PATIENCE = 1  # epochs without improvement, after which the training stops
WARM_UP = 20  # steps
CLIP = 1.0  # norm of the gradient


class FineTuned(NamedTuple):
    """The number of epochs, the best one on the validation text, and whether the training stopped for no progress."""

    best_epoch: int
    epochs: int
    is_converged: bool


def load_causal(folder: Path) -> CausalScorer:
    """Read a causal network and its tokenizer. Raises DataError for another model, and as `load_scorer`."""
    scorer = load_scorer(str(folder), MAX_TOKENS)
    if not isinstance(scorer, CausalScorer):
        raise DataError(f"{folder}: expected a causal language model, found one that translates; give another folder")
    return scorer


def check_lines(scorer: CausalScorer, lines: Sequence[str], folder: Path) -> None:
    """Raise DataError for a line that is too long or that the tokenizer changes, which has no probability then."""
    for line in lines:
        tokens = scorer.tokens(line)
        if len(tokens) > scorer.longest:
            raise DataError(
                f"{folder}: expected lines of at most {scorer.longest:,} tokens, found {len(tokens):,} in "
                f"{line[:80]!r}; break the line"
            )
        decoded = scorer.tokenizer.decode(tokens, clean_up_tokenization_spaces=False).strip()
        if decoded != line or (scorer.tokenizer.unk_token_id in tokens and scorer.tokenizer.unk_token not in line):
            raise DataError(
                f"{folder}: expected a tokenizer that writes every string, found {decoded[:80]!r} for {line[:80]!r}; "
                "give a network whose tokenizer has bytes and keeps the case"
            )


def fine_tune(
    folder: Path, out: Path, train: Sequence[str], valid: Sequence[str], rate: float, seed: int, max_epochs: int
) -> FineTuned:
    """Train on lines, and save the best epoch's network and its tokenizer in `out`. Prints a line for each epoch.

    Raises:
        DataError: a folder without a causal network, a tokenizer that changes text, or a line that is too long.
    """
    torch.manual_seed(seed)
    order = random.Random(seed)
    scorer = load_causal(folder)
    check_lines(scorer, [*train, *valid], folder)
    model, device = scorer.model, scorer.model.device.type
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARM_UP))
    sequences = sorted((scorer.tokens(line) for line in train), key=len)
    batches = [*together(sequences, lambda tokens: len(tokens) + 1, math.inf, MAX_TOKENS)]
    best, best_epoch = math.inf, 0
    for epoch in range(1, max_epochs + 1):
        order.shuffle(batches)
        model.train()
        total = 0.0
        for batch in batches:
            with torch.autocast(device, torch.bfloat16):
                logits, targets, mask = scorer.logits(batch)
            nats = functional.cross_entropy(logits[mask].float(), targets[mask], reduction="sum")
            (nats / mask.sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad()
            warm_up.step()
            total += nats.item()
        score = sum_of(scorer.lines(valid))
        bits = score.bits / score.characters
        is_better = bits < best
        print(f"epoch {epoch}: train loss {total / math.log(2):,.0f} bits, valid {bits:.4f} bits per character")
        if is_better:
            best, best_epoch = bits, epoch
            with whole_folder(out) as saved:
                model.save_pretrained(saved)
                scorer.tokenizer.save_pretrained(saved)
        elif epoch - best_epoch >= PATIENCE:
            break
    return FineTuned(best_epoch, epoch, epoch - best_epoch >= PATIENCE)
