"""Scores of a text by a model with a step (updates.py) after each group of sentences, and gradients of training data.

The loss of a step is −log p of a group's words and ends of sentences, averaged, in nats. The model is in evaluation
mode: no dropout, and backgrounds as for a new text. For training text, n-grams exclude the sentence itself.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain, islice

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import LineScore, together
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.scoring.text_bits import TextScorer
from llrnn_research.dynamic_evaluation.updates import Updates, mean_squares

SEED = 1  # of the order of training sentences


def scored_groups(
    scorer: TextScorer, groups: Sequence[list[LineScore]], updates: Updates, rate: float, decay: float
) -> Iterator[list[LineScore]]:
    """Yield the groups with their scores before the step on them, the first one with the weights of the checkpoint.

    With rate 0 (no steps), also yield lines that are too long, and scores that are not finite. With other rates, such
    scores show that steps were too large, and end the iteration.
    """
    updates.reset()
    for group in tqdm(groups, f"rate {rate:g}, decay {decay:g}", unit=" groups", leave=False, disable=None):
        if group[0].too_long_for is not None:
            yield group
            continue
        # torch has no gradient through cuDNN's recurrent networks in evaluation mode
        with torch.set_grad_enabled(rate > 0.0), torch.backends.cudnn.flags(enabled=rate == 0.0):
            lines, log_probs = scorer.scored(group)
        yield lines
        if rate > 0.0:
            if not bool(log_probs.isfinite().all()):
                return
            updates.step(-log_probs.mean(), rate, decay)


def training_squares(
    scorer: TextScorer, weights: Sequence[Tensor], subset: str, most: int, sentences: int
) -> list[Tensor]:
    """Return MS of `weights` (updates.py) over at most `most` groups of a subset of the model's data folder.

    Raises:
        OptionError: no such subset.
        DataError: the subset is damaged, or has no sentence with a nonzero probability.
    """
    losses = _losses(scorer, subset, most, sentences)
    first = next(losses, None)
    if first is None:
        raise DataError(
            f"--subset {subset}: the model gives probability 0 to all its sentences; give another part of the data "
            "folder"
        )
    return mean_squares(chain([first], losses), weights)


def _losses(scorer: TextScorer, subset: str, most: int, sentences: int) -> Iterator[Tensor]:
    """Yield losses of groups in random order, with <unk> for unknown words, skipping those of probability 0."""
    task, pad = scorer.task, scorer.dictionary.pad()
    try:
        task.load_dataset(subset)
        data = task.dataset(subset)
        drawn = np.random.default_rng(SEED).permutation(len(data))
        order = [i for i in drawn if 0 < data.num_tokens(i) <= scorer.longest]
        groups = list(islice(together(order, data.num_tokens, sentences, scorer.max_tokens), most))
        samples = [data.collater([data[i] for i in group]) for group in groups]
    except ValueError as error:
        raise DataError(
            f"--subset {subset}: expected a file of fairseq-preprocess, found damage ({error}); make the data folder "
            "again"
        ) from None
    decoder = scorer.model.decoder
    leaves_out = isinstance(decoder, LogLinearDecoder) and subset.startswith("train")
    for sample in tqdm(samples, "gradients of training", unit=" groups", leave=False, disable=None):
        previous, target = (x.to(scorer.device) for x in (sample["net_input"]["src_tokens"], sample["target"]))
        with torch.backends.cudnn.flags(enabled=False), _leaving_out(decoder.head) if leaves_out else nullcontext():
            log_probs = scorer.log_probs(previous, target)[1][target.ne(pad)]
        if bool(log_probs.isfinite().all()):
            yield -log_probs.mean()


@contextmanager
def _leaving_out(head: LogLinearHead) -> Iterator[None]:
    """Exclude the given sentences from backgrounds without dropout, by setting only the head's training flag."""
    head.training = True
    try:
        yield
    finally:
        head.training = False
