"""A bag of words and a log-linear head over labels, flat or over a tree, in plain PyTorch with sparse gradients.

fairseq's optimizers process every weight in every update. A batch of 512 glosses needs few rows of 48,000 words, and
with a tree few of 140,000 labels: sparse gradients process only those.

Sizes: B texts of a batch, L words, H width, S labels, k answers.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from label_data import Texts, dictionary, hits_of
from torch import Tensor

from fairseq_llrnn import LogLinearHead
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.head import Exact
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.systems.classification.label_hits import LabelHits
from fairseq_llrnn.systems.classification.plugin.label_decoder import BagOfWords
from llrnn_research.output_trees.output_tree import LearnedTreeLayer, OutputTree, TreeOptions
from llrnn_research.output_trees.tree import Tree

PAD, END = 0, 1
CHANGES = 50  # of a learned tree, in the first half of the training, as in the thesis
AT_ONCE = 256  # texts that are answered together


@dataclass(frozen=True)
class Options:
    """Options of a training."""

    tree: str = "huffman"  # or "flat", "random", "learned", or one that is given
    arity: int = 20
    size: int = 100  # H
    rate: float = 0.2  # of Adagrad; it falls to zero in a line, of a learned tree from the middle of the training on
    epochs: int = 10
    batch: int = 256
    seed: int = 1


def in_random_order(counts: Counter[str], seed: int) -> dict[str, int]:
    """Return labels by falling frequency, equal ones at random. Neighbours share nodes, and the files' order has
    information.

    WordNet's definitions are in the order of its hierarchy.
    """
    labels = list(counts)
    random.Random(seed).shuffle(labels)
    return {label: counts[label] for label in sorted(labels, key=lambda label: -counts[label])}


class Classifier:
    """The model with its dictionaries."""

    def __init__(self, train: Texts, options: Options, given: Tree | None = None) -> None:
        """Args: given: a tree that another model has learned from the same texts; it is not changed."""
        torch.manual_seed(options.seed)
        self.options = options
        self.words = {word: i for i, word in enumerate(dictionary(train.words), start=2)}
        counts = in_random_order(dictionary(train.labels), options.seed)
        self.symbols = (*SPECIALS, *counts)
        self.labels = {label: i for i, label in enumerate(self.symbols)}
        of_symbols = np.array([0] * len(SPECIALS) + list(counts.values()))
        prior = build_prior(self.symbols, Recipe(labels=True, counts=of_symbols, top_words="all"))
        self.bag = BagOfWords(2 + len(self.words), PAD, options.size, sparse_gradients=True)
        tree = self._tree(len(self.symbols)) if given is None else given
        normaliser = Exact if tree is None else OutputTree(tree, sparse_gradients=True)
        self.head = LogLinearHead(prior, options.size, normaliser=normaliser, initial_scale=0.0)

    def _tree(self, leaves: int) -> TreeOptions | None:
        options = self.options
        if options.tree == "flat":
            return None
        if options.tree == "huffman":
            return TreeOptions("huffman", options.arity)
        depth = next(depth for depth in range(1, 64) if options.arity**depth >= leaves)
        if options.tree == "random":
            return TreeOptions("random", options.arity, depth, seed=options.seed)
        half = options.epochs / 2
        often = math.ceil(CHANGES / half)
        return TreeOptions("learned", options.arity, depth, reassign=often, reassign_epochs=half, seed=options.seed)

    def rows(self, texts: Texts) -> list[list[int]]:
        """Return indices of the words known from training, and the end."""
        return [[*(self.words[word] for word in words if word in self.words), END] for words in texts.words]

    @staticmethod
    def padded(rows: list[list[int]]) -> Tensor:
        """Return padded rows, (B, L)."""
        width = max(map(len, rows))
        return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])

    def train(self, texts: Texts) -> Iterator[tuple[int, float, float]]:
        """Yield after each epoch its number, the processor seconds of training so far, and the mean loss in nats."""
        options, rng = self.options, np.random.default_rng(self.options.seed)
        rows, gold = self.rows(texts), [[self.labels[label] for label in labels] for labels in texts.labels]
        optimizer = torch.optim.Adagrad([*self.bag.parameters(), *self.head.parameters()], lr=options.rate)
        batches = math.ceil(len(rows) / options.batch)
        updates, total = 0, batches * options.epochs
        started = time.process_time()
        self.head.train()
        for epoch in range(1, options.epochs + 1):
            loss_sum = 0.0
            for part in np.array_split(rng.permutation(len(rows)), batches):
                done = updates / total
                for group in optimizer.param_groups:
                    group["lr"] = options.rate * (min(1.0, 2 - 2 * done) if options.tree == "learned" else 1.0 - done)
                targets = torch.tensor([[gold[i][rng.integers(len(gold[i]))]] for i in part])  # one label of each text
                optimizer.zero_grad()
                hidden = self.bag(self.padded([rows[i] for i in part]))
                loss = self.head.loss(hidden.unsqueeze(1), targets)
                loss.backward()
                optimizer.step()
                updates, loss_sum = updates + 1, loss_sum + loss.item() * len(part)
                if isinstance(self.head.normaliser, LearnedTreeLayer):
                    self.head.normaliser.update_if_due(updates, batches)
            yield epoch, time.process_time() - started, loss_sum / len(rows)

    @torch.inference_mode()
    def answers(self, texts: Texts, k: int) -> list[list[str]]:
        """Return the k best labels of each text, exactly."""
        self.head.eval()
        rows, found = self.rows(texts), list[list[str]]()
        start = self.head.start(AT_ONCE)
        for begin in range(0, len(rows), AT_ONCE):
            some = rows[begin : begin + AT_ONCE]
            _, best = self.head.top_k(self.bag(self.padded(some)), start.select(torch.arange(len(some))), k)
            found += [[self.symbols[i] for i in row] for row in best.tolist()]
        return found

    @torch.inference_mode()
    def nats(self, texts: Texts) -> float:
        """Return the mean −log p of the labels known from training, each for its text."""
        self.head.eval()
        pairs = [(row, self.labels[label]) for row, labels in zip(self.rows(texts), texts.labels, strict=True)
                 for label in labels if label in self.labels]  # fmt: skip
        total = 0.0
        for begin in range(0, len(pairs), AT_ONCE):
            some = pairs[begin : begin + AT_ONCE]
            hidden = self.bag(self.padded([row for row, _ in some])).unsqueeze(1)
            total += self.head.loss(hidden, torch.tensor([[label] for _, label in some])).item() * len(some)
        return total / len(pairs)

    def measure(self, texts: Texts, k: int = 5) -> tuple[LabelHits, float]:
        """Return the accuracy of the answers, and their processor seconds."""
        started = time.process_time()
        answers = self.answers(texts, k)
        return hits_of(answers, texts, set(self.labels)), time.process_time() - started
