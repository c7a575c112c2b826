"""fastText and napkinXC on the same texts, in separate processes, one thread each.

They are the extra `classification` of this package: pip install ".[classification]".
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from label_data import Texts, dictionary, hits_of

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.classification.label_hits import LabelHits

PREFIX = "__label__"


def imported(name: str) -> Any:
    """Import a package of the extra. Raises OptionError if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise OptionError(
            f'{name}: expected this package to be installed, found none; pip install ".[classification]", '
            "or leave it out"
        ) from None


@dataclass(frozen=True)
class FastTextOptions:
    """Options of fastText.train_supervised. All others are its defaults, except for one thread."""

    loss: str = "hs"  # a binary Huffman tree; "softmax" is flat
    size: int = 100
    rate: float = 0.5  # falls to zero in a line
    epochs: int = 10
    seed: int = 1


class FastText:
    """fastText's bag of words."""

    def __init__(self, texts: Texts, options: FastTextOptions) -> None:
        """Train. `seconds` is the processor time of the training, without reading the file if that can be separated."""
        self.labels = {label for labels in texts.labels for label in labels}
        fasttext = imported("fasttext")
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "train.txt")
            pairs = list(zip(texts.words, texts.labels, strict=True))
            random.Random(options.seed).shuffle(pairs)  # it reads them in their order, in every epoch
            with path.open("w", encoding="utf-8") as file:
                for words, labels in pairs:
                    file.write(" ".join([*(PREFIX + label for label in labels), *words]) + "\n")
            started = time.process_time()
            self.model = fasttext.train_supervised(
                str(path), lr=options.rate, dim=options.size, epoch=options.epochs, loss=options.loss, thread=1,
                minCount=1, verbose=0, seed=options.seed,
            )  # fmt: skip
            self.seconds = time.process_time() - started

    def measure(self, texts: Texts, k: int = 5) -> tuple[LabelHits, float]:
        lines = [" ".join(words) for words in texts.words]
        started = time.process_time()
        answers, _ = self.model.f.multilinePredict([line + "\n" for line in lines], k, 0.0, "strict")
        seconds = time.process_time() - started
        best = [[label.removeprefix(PREFIX) for label in row] for row in answers]
        return hits_of(best, texts, self.labels), seconds


class NapkinXC:
    """napkinXC's probabilistic label tree (hierarchical k-means, arity 2) over binary weights of unit length, with
    linear nodes.
    """

    def __init__(self, texts: Texts, arity: int = 2) -> None:
        models = imported("napkinxc.models")
        self.words = {word: i for i, word in enumerate(dictionary(texts.words))}
        self.names = list(dictionary(texts.labels))
        number = {label: i for i, label in enumerate(self.names)}
        self.labels = set(self.names)
        self.place = tempfile.TemporaryDirectory()
        self.model = models.PLT(self.place.name, tree_type="hierarchicalKmeans", arity=arity, threads=1, verbose=False)
        targets = [[number[label] for label in labels] for labels in texts.labels]
        started = time.process_time()
        self.model.fit(self._rows(texts.words), targets)
        self.seconds = time.process_time() - started

    def _rows(self, texts: Sequence[Sequence[str]]) -> Any:
        """Return texts as rows of a sparse matrix, each of length one."""
        scipy = import_module("scipy.sparse")
        rows, columns = [], []
        for i, words in enumerate(texts):
            for word in {word for word in words if word in self.words}:
                rows.append(i)
                columns.append(self.words[word])
        sizes = [len({word for word in words if word in self.words}) for words in texts]
        values = [1.0 / sizes[i] ** 0.5 for i in rows]
        return scipy.csr_matrix((values, (rows, columns)), shape=(len(texts), len(self.words)), dtype="float32")

    def measure(self, texts: Texts, k: int = 5) -> tuple[LabelHits, float]:
        rows = self._rows(texts.words)
        started = time.process_time()
        answers = self.model.predict(rows, top_k=k)
        seconds = time.process_time() - started
        return hits_of([[self.names[i] for i in row] for row in answers], texts, self.labels), seconds
