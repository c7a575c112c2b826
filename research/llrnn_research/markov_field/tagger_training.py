"""Train, store and apply a tagger, for `llrnn mrf train --conllu` and `mrf tag`.

Sizes: T tags, S signatures, F features, K order, M offsets, n words of a sentence.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.files.numbers import check_penalty
from fairseq_llrnn.files.text_lines import ReadCount, place
from fairseq_llrnn.lexicon.readers.conllu import SURFACE_ROWS, iter_conllu_sentences
from llrnn_research.markov_field.lbfgs import of_tags
from llrnn_research.markov_field.tagger import END, WordSignatures, rows_of

from .folder import AGAIN, TAGS, check_free, read_folder, write_folder
from .lbfgs import LBFGS
from .learning import Progress, join_values, split_values
from .moments import layout
from .tagger import SEPARATOR, TagForm, TagMoments, best_tags, bound

NEAR = {1: (0,), 3: (-1, 0, 1)}
PENALTY = 1e-6
TOLERANCE = 1e-6  # stop if ten steps gain less than this share of the objective
Sentence = Sequence[tuple[str, str]]  # words with their tags


@dataclass(frozen=True)
class TaggerOptions:
    """Training options, with the names of the command line."""

    conllu: Sequence[str]
    order: int = 1
    near: int = 3
    rare: int = 3
    penalty: float = PENALTY
    iterations: int = 200

    def check(self) -> None:
        """Raise OptionError for numbers out of range."""
        if self.near not in NEAR:
            raise OptionError(
                f"--near {self.near}: expected 1 or 3 words, the tag's own word in the middle"
            )
        if not 1 <= self.order <= 3:
            raise OptionError(
                f"--order {self.order}: expected 1, 2 or 3 for a tagger, whose search takes T^(K+1) steps"
            )
        check_least("--rare", self.rare, 1)
        check_least("--iterations", self.iterations, 1)
        check_penalty("--penalty", self.penalty)


@dataclass(frozen=True)
class Tagger:
    """Parameters, and the names of features and tags."""

    order: int
    offsets: tuple[int, ...]
    tags: tuple[str, ...]  # T, the separators' first
    names: tuple[str, ...]  # F
    tag_scores: Tensor  # τ (T,)
    pairs: Tensor  # (K, T, T)
    words: Tensor  # u (M, T, F)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _forms(self) -> frozenset[str]:
        return frozenset(name.partition(":")[2] for name in self.names if name.startswith("Form:"))

    def tag(self, sentence: Sequence[str]) -> list[str]:
        """Return the best tags, or none for an empty sentence."""
        if not sentence:
            return []
        reach = max(abs(offset) for offset in self.offsets)
        padded = [END] * reach + list(sentence) + [END] * reach
        features = rows_of(padded, self._index, self._forms)
        num_offsets, size, _ = self.words.shape
        scores = torch.sparse.mm(features, self.words.flatten(0, 1).T).view(-1, num_offsets, size).numpy()
        begin, end = reach, reach + len(sentence)
        near = sum(scores[begin + offset : end + offset, m] for m, offset in enumerate(self.offsets))
        tags = best_tags(self.order, self.tag_scores.numpy(), self.pairs.numpy(), np.array(near))
        return [self.tags[tag] for tag in tags]

    def save(self, folder: str) -> None:
        """Write the folder. Raises DataError."""
        arrays = {"tags": self.tag_scores.numpy(), "pairs": self.pairs.numpy(), "words": self.words.numpy()}
        description = {"order": self.order, "offsets": self.offsets, "tags": self.tags, "features": self.names}
        write_folder(folder, TAGS, description, arrays)

    @classmethod
    def load(cls, folder: str) -> Tagger:
        """Read a folder without executing anything in it. Raises DataError if it is missing or damaged."""
        saved = read_folder(folder, TAGS)
        order, offsets = saved.description.get("order"), saved.description.get("offsets")
        lists = [saved.description.get(name) for name in ("tags", "features")]
        sound = order in (1, 2, 3) and offsets in ([0], [-1, 0, 1])
        if not sound or not all(
            isinstance(values, list) and all(isinstance(name, str) for name in values) for values in lists
        ):
            raise DataError(f"{folder}: expected a tagger, found invalid content; {AGAIN}")
        tags, names = (tuple(values or ()) for values in lists)
        size = len(tags)
        if size < 2 or len(set(tags)) < size or len(set(names)) < len(names):
            raise DataError(
                f"{folder}: expected at least two tags, and each tag and feature once, found others; {AGAIN}"
            )
        return cls(
            int(order or 1), tuple(offsets or ()), tags, names, saved.numbers("tags", size),
            saved.numbers("pairs", order, size, size), saved.numbers("words", len(offsets or ()), size, len(names)),
        )  # fmt: skip


def read_tagged(paths: Sequence[str]) -> list[Sentence]:
    """Return words and UPOS of treebanks. Raises DataError for an unreadable or empty file, or a word without a tag."""
    sentences: list[Sentence] = []
    for path in paths:
        count = ReadCount(path)
        for sentence in iter_conllu_sentences(count, lowercase=False):
            count.left_out[SURFACE_ROWS] += len(sentence.spans)
            for token in sentence.words:
                count.read += 1
                if token.upos is None:
                    raise DataError(
                        f"{place(path, token.line)}: expected a tag (UPOS) of {token.form!r}, found none; give a "
                        "tagged treebank"
                    )
            sentences.append([(token.form, token.upos or "") for token in sentence.words])
    return [sentence for sentence in sentences if sentence]


def train_tagger(
    options: TaggerOptions, out: str | None = None, watch: Callable[[Progress], None] = lambda progress: None
) -> Tagger:
    """Return the tagger, saved in `out`. Raises OptionError and DataError."""
    options.check()
    if out is not None:
        check_free(out)
        if os.path.lexists(out):
            raise OptionError(f"--out {out}: expected a free name, found a field; give another, or remove the folder")
    tagger = learn(read_tagged(options.conllu), options, watch)
    if out is not None:
        tagger.save(out)
    return tagger


def learn(
    sentences: Sequence[Sentence], options: TaggerOptions, watch: Callable[[Progress], None] = lambda progress: None
) -> Tagger:
    """Return the tagger with the highest bound on the likelihood of tags and words."""
    counts = Counter(word for sentence in sentences for word, _ in sentence)
    signatures = WordSignatures.of(counts, options.order * len(sentences), options.rare)
    tags = (END, *sorted({tag for sentence in sentences for _, tag in sentence}))
    number = {tag: i for i, tag in enumerate(tags)}
    lengths = np.array([len(sentence) for sentence in sentences])
    flat = [pair for sentence in sentences for pair in sentence]
    rows = np.array([signatures.signature_of[word] for word, _ in flat])
    form = TagForm(options.order, NEAR[options.near], len(tags), signatures.features, signatures.log_masses)
    moments = TagMoments.count(
        form,
        layout(np.array([number[tag] for _, tag in flat]), lengths, SEPARATOR, options.order),
        layout(rows, lengths, signatures.signature_of[END], options.order),
    )
    values = _climb(form, moments, options, watch)
    return Tagger(options.order, form.offsets, tags, signatures.names, values["tags"], values["pairs"], values["words"])


def _climb(
    form: TagForm, moments: TagMoments, options: TaggerOptions, watch: Callable[[Progress], None]
) -> dict[str, Tensor]:
    shapes, begun = form.shapes(), time.monotonic()
    scales = join_values(of_tags(form, moments), shapes).add(options.penalty).rsqrt()

    def values_at(scaled: Tensor) -> dict[str, Tensor]:
        return split_values(scales * scaled, shapes)

    def function(x: Tensor) -> tuple[float, Tensor]:
        leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            values = values_at(leaf)
            penalty = sum((values[name].square().sum() for name in ("tags", "pairs", "words")), leaf.new_zeros(()))
            loss = 0.5 * options.penalty * penalty - bound(form, moments, values)
            (gradient,) = torch.autograd.grad(loss, leaf)
        return loss.item(), gradient

    search, objectives = LBFGS(function, torch.zeros_like(scales)), list[float]()
    while len(objectives) < options.iterations and search.step():
        objectives.append(-search.value)
        seconds = time.monotonic() - begun
        watch(Progress(len(objectives), seconds, objectives[-1], objectives[-1], None, True))
        if len(objectives) > 10 and objectives[-1] - objectives[-11] < TOLERANCE * abs(objectives[-1]):
            break
    return values_at(search.x)
