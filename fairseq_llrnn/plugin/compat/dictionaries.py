"""Reject a model that was trained over other words than those of the data.

A checkpoint of fairseq holds no words. If two dictionaries have the same size, its weights fit both, but belong to the
words of one. The checkpoint records the data folder of its training. If that folder still exists, its dictionaries are
compared with those of the command's task. If it is gone or unreadable, no check is possible. If the sizes differ, the
weights do not fit, and loading fails with a message.

`OpenDictionary` is a dictionary of fairseq that also contains strings outside its words, if a prior uses them. Its size
and the ids of its words are fairseq's. A string outside gets an id beyond the size at its first lookup. Output has the
string itself again: in `fairseq-interactive`, in `fairseq-generate` and in BLEU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor, nn

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, OpenWords, load_dictionary, plain
from fairseq_llrnn.files.text_lines import place, shown
from fairseq_llrnn.plugin.compat.loading import dictionaries_of
from fairseq_llrnn.plugin.compat.moved_folders import TWO_DICTIONARIES, data_folder


def check_dictionary_words(path: str, state: Mapping[str, Any], task: FairseqTask) -> None:
    """Raise DataError if a checkpoint's model is over other words than those of `task`.

    Args:
        state: content of the checkpoint `path`.
    """
    dictionaries: list[Dictionary] = []  # in the order of dictionaries_of
    if isinstance(task, LanguageModelingTask):
        dictionaries = [] if task.dictionary is None else [task.dictionary]
    elif isinstance(task, TWO_DICTIONARIES):
        dictionaries = [task.source_dictionary, task.target_dictionary]
    files = _files(state.get("cfg"))
    if len(files) == len(dictionaries):  # otherwise another kind of task: fairseq checks its model
        for file, dictionary in zip(files, dictionaries, strict=True):
            _compare(path, file, dictionary.symbols)
    if (take_source_prior := getattr(task, "take_source_prior", None)) is not None:
        take_source_prior(path, state)


def _files(cfg: Any) -> list[str]:
    """Return the paths of the dictionaries of a checkpoint's training, according to its options."""
    try:
        folder = data_folder(str(cfg.task.data))
        return [os.path.join(folder, name) for name in dictionaries_of(cfg.task, folder)]
    except (AttributeError, OmegaConfBaseException):  # options without data, or with a broken reference
        return []


def _compare(path: str, file: str, expected: Sequence[str]) -> None:
    """Raise DataError if the dictionary `file` has as many symbols as `expected`, but different ones."""
    if not os.path.isfile(file):
        return
    try:
        symbols = load_dictionary(file).symbols
    except DataError:  # no longer the file of the training
        return
    if len(symbols) != len(expected):
        return
    for number, (theirs, ours) in enumerate(zip(symbols, expected, strict=True)):
        if theirs != ours:
            raise DataError(
                f"{path}: expected a model over the words of this data, found one that was trained with another "
                f"dictionary: {place(file, number - len(SPECIALS) + 1)} has {shown(theirs)}, the data {shown(ours)}; "
                "use models that were trained with the dictionaries of the data folder; if the model's dictionaries "
                "have moved, name their folder with --model-overrides \"{'data': 'DATA-BIN'}\""
            )


class Marker(Protocol):
    """Finds the strings that a system requires in the translation of a line, and marks tokens
    (evidence/group_slots.py).
    """

    def read_for(self, lines: Sequence[str]) -> None:
        """Read the files that these lines need, so that an error in a file is not reported as an error of a line."""

    def marked(self, tokens: Sequence[int], cells: Sequence[str] = ()) -> list[int]:
        """Return the tokens of a source, with marks. cells: the texts after it, separated by tabs."""
        raise NotImplementedError


class OpenDictionary(Dictionary):
    """fairseq's dictionary, extended by strings outside its words."""

    def __init__(
        self, dictionary: Dictionary, words: OpenWords, index: Callable[[str], int | None] | None = None
    ) -> None:
        """
        Args:
            words: they begin with the symbols of `dictionary`.
            index: returns the id of a word, or None for one that stays <unk>. Default: every word has an id.
        """
        self.__dict__.update(dictionary.__dict__)
        self._words = words
        self._index = index or words.index
        self.marker: Marker | None = None  # only of a source dictionary, if a system requires strings

    def __getitem__(self, index: int) -> str:
        index = plain(int(index))
        return self._words.symbols[index] if index < len(self._words.symbols) else self.unk_word

    def index(self, sym: str) -> int:
        token = self._index(sym)
        return self.unk() if token is None else token

    def encode_line(self, line: str, *args: Any, **options: Any) -> Tensor:
        """Encode a line like fairseq. With a marker, the tokens have marks for the cells after tabs."""
        if self.marker is None:
            return super().encode_line(line, *args, **options)
        text, *cells = line.rstrip("\n").split("\t")
        tokens: Tensor = super().encode_line(text, *args, **options)
        marked = self.marker.marked(tokens.tolist(), [cell for cell in cells if cell.strip()])
        return torch.tensor(marked, dtype=torch.long)

    def add_symbol(self, word: str, n: int = 1, overwrite: bool = False) -> int:
        """Return the id of a word. Unlike fairseq's, the dictionary does not grow while translations are printed."""
        return self.index(word)


def with_unk(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """Replace strings outside the dictionary by <unk>, and remove marks: the ids that an embedding table has."""
    tokens = plain(tokens)
    return tokens.masked_fill(tokens >= len(dictionary), dictionary.unk())


def reads_strings(embedding: nn.Module) -> bool:
    """Return whether an embedding represents strings outside the dictionary, other than as <unk>."""
    return any(getattr(part, "reads_strings", False) for part in embedding.modules())
