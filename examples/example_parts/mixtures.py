"""Mixtures of a model with n-grams, token by token (fairseq_llrnn/comparison/mixtures.py). All figures are in nats.

N-grams are those of `llrnn prior --background "ngram(ORDER, folds=0)"` (interpolated modified Kneser-Ney).

Sizes: T words of a sentence, N tokens of a text with their ends.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fairseq_llrnn.comparison.mixtures import best_weight, loss, mixed
from fairseq_llrnn.features.dictionary import EOS, UNK
from fairseq_llrnn.prior.prior import Prior

ORDERS = (3, 5)  # of the n-grams that are tried


@torch.inference_mode()
def ngram_log_probs(prior: Prior, sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Return log b(x | K) of every word, or of <unk> instead, and of every end: (N,) in nats; b sums to one."""
    background, end = prior.background().bind(), prior.index(EOS)
    number = {symbol: i for i, symbol in enumerate(prior.symbols)}
    found = []
    for words in sentences:
        ids = [*(number.get(word, number[UNK]) for word in words), end]
        targets, previous = torch.tensor(ids), torch.tensor([[end, *ids[:-1]]])  # shape: (T + 1,), (1, T + 1)
        view = background.view_of(previous)
        classes, share = view.locate(targets)
        of_class = view.class_mass.dense().log_softmax(-1).gather(1, classes.unsqueeze(1)).squeeze(1)
        found.append((of_class + share).double().numpy())
    return np.concatenate(found)


class Mixture(NamedTuple):
    order: int  # of the n-grams
    weight: float  # of the model
    log_probs: dict[str, np.ndarray]  # of each text: (N,)
    ngrams: dict[str, np.ndarray]  # of each text by the n-grams alone: (N,)


def with_ngrams(
    model: Mapping[str, np.ndarray], texts: Mapping[str, Sequence[Sequence[str]]], priors: Mapping[int, Path]
) -> Mixture:
    """Mix a model with n-grams. Order and weight are those with the least loss on the text called valid.

    Args:
        model: its log-probabilities of each text, (N,).
        texts: the same texts as words.
        priors: priors of the n-grams, by order.
    """
    tried = []
    for order, place in priors.items():
        prior = Prior.load(place)
        ngrams = {name: ngram_log_probs(prior, sentences) for name, sentences in texts.items()}
        weight = best_weight(model["valid"], ngrams["valid"])
        log_probs = {name: mixed(model[name], ngrams[name], weight) for name in texts}
        tried.append(Mixture(order, weight, log_probs, ngrams))
    return min(tried, key=lambda one: loss(one.log_probs["valid"]))
