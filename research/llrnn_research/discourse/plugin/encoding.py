"""Compute vectors of sentences with a checkpoint of `discourse_encoder`."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairseq_llrnn.errors import DataError, LLRNNError, OptionError
from fairseq_llrnn.features.dictionary import hash_symbols, load_dictionary
from fairseq_llrnn.head.checks import in_hex
from fairseq_llrnn.plugin.compat.dictionaries import reads_strings
from fairseq_llrnn.plugin.compat.loading import build_model, read_checkpoint
from fairseq_llrnn.plugin.compat.moved_folders import (
    places_of,
    report_moved,
    save_dir_of,
    take_source_prior,
)
from fairseq_llrnn.plugin.names import name_of
from fairseq_llrnn.source_embedding import OPTION
from llrnn_research.discourse.data import DESCRIPTION, DICTIONARY, read_description, word_id
from llrnn_research.discourse.plugin.model import FINGERPRINT, DiscourseEncoder
from llrnn_research.discourse.plugin.task import DiscourseTask

AT_ONCE = 4096  # sentences sorted by length together


@dataclass(frozen=True)
class Encoder:
    """A model and its vocabulary."""

    model: DiscourseEncoder
    task: DiscourseTask
    lower: bool  # whether its training text was lower-cased
    max_tokens: int  # of a batch, padding included

    @property
    def size(self) -> int:
        """Return D."""
        return self.model.encoder.output_size

    def blocks(self, lines: Iterable[str], place: str) -> Iterator[np.ndarray]:
        """Yield the vectors of sentences, in order, in blocks: (n, D) float32.

        Args:
            lines: a sentence each.
            place: name of the input, for errors.

        Raises:
            DataError: an empty sentence, with its line.
        """
        words_of = self.task.source_words
        open_ids = reads_strings(self.model.encoder.embedding)  # other embeddings do not distinguish unknown words
        waiting: list[list[int]] = []
        for number, line in enumerate(lines, 1):
            words = (line.lower() if self.lower else line).split()[: self.task.cfg.max_words]
            if not words:
                raise DataError(
                    f"{place}, line {number}: expected a sentence, found an empty line; remove it, because every line "
                    "gets a vector"
                )
            waiting.append([word_id(words_of, word, open_ids) for word in words])
            if len(waiting) == AT_ONCE:
                yield self.vectors(waiting)
                waiting = []
        if waiting:
            yield self.vectors(waiting)

    @torch.no_grad()
    def vectors(self, sentences: Sequence[Sequence[int]]) -> np.ndarray:
        """Return the vectors of sentences given as word ids, in batches of similar length: (n, D) float32."""
        rows = np.empty((len(sentences), self.size), dtype=np.float32)
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        pad = self.task.dictionary.pad()
        while order:
            longest = len(sentences[order[-1]])
            batch_size = max(1, self.max_tokens // longest)
            batch, order = order[-batch_size:], order[:-batch_size]
            tokens = torch.full((len(batch), longest), pad)
            for row, i in enumerate(batch):
                tokens[row, : len(sentences[i])] = torch.tensor(sentences[i])
            rows[batch] = self.model.encode(tokens).numpy()
        return rows


def load_encoder(path: str, data: str | None, source_prior: str | None, max_tokens: int) -> Encoder:
    """Return the encoder of a checkpoint.

    Args:
        data, source_prior: their current folders (None: those of the training).

    Raises:
        DataError: no checkpoint, or one of another kind.
        OptionError: data or prior are not found.
    """
    state = read_checkpoint(path)
    if name_of(state["cfg"], "model") != "discourse_encoder":
        raise DataError(
            f"{path}: expected an encoder of sentences (--arch discourse_encoder), found "
            f"{name_of(state['cfg'], 'model')!r}; give another checkpoint"
        )
    task = state["cfg"].task
    task.data = data if data is not None else _find_data(path, state, str(task.data))
    lower = bool(read_description(Path(task.data))["lower"])
    take_source_prior(path, task, source_prior, OPTION, state)
    model, loaded = build_model(path, state)
    assert isinstance(model, DiscourseEncoder) and isinstance(loaded, DiscourseTask)
    return Encoder(model.eval(), loaded, lower, max_tokens)


def _find_data(path: str, state: dict[str, Any], recorded: str) -> str:
    """Return the data folder of a checkpoint, at its recorded place relative to here or to the checkpoint."""
    words = in_hex(state["model"].get(FINGERPRINT), path)

    def fits(folder: Path) -> bool:
        if not (os.path.isfile(folder / DICTIONARY) and os.path.isfile(folder / DESCRIPTION)):
            return False
        try:
            return hash_symbols(load_dictionary(folder / DICTIONARY).symbols) == words
        except LLRNNError:  # damaged
            return False

    found = next(filter(fits, places_of(recorded, save_dir_of(state), path)), None)
    if found is None:
        raise OptionError(
            f"{path} was trained with the data folder {recorded!r}, which does not exist, relative to here or to the "
            "checkpoint, or has other words; give the folder with --data DIR"
        )
    report_moved(path, "data folder", recorded, found)
    return str(found)
