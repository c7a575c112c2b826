"""A model that was trained over other words than those of the data at hand is refused.

A checkpoint of fairseq holds no words: where two dictionaries have the same size, its weights fit either, and what
they say belongs to other words. But it records where its training found the data. Where that folder is still there,
its dictionaries are compared with those of the command's task; where it is gone, or holds none that can be read,
nothing is known. Where the sizes differ, the weights do not fit, and loading fails with a message.

`OpenDictionary` is a dictionary of fairseq that also knows strings outside itself, where a prior has a use for them.
Its size, and the ids of its words, are fairseq's. A string outside gets an id beyond the size when it is first looked
up, and is itself again in what fairseq prints: `fairseq-interactive`, `fairseq-generate` and BLEU see real strings.
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
    """Raise DataError for a checkpoint of a model over other words than those of `task`.

    Args:
        state: what the checkpoint `path` holds.
    """
    dictionaries: list[Dictionary] = []  # in the order of dictionaries_of
    if isinstance(task, LanguageModelingTask):
        dictionaries = [] if task.dictionary is None else [task.dictionary]
    elif isinstance(task, TWO_DICTIONARIES):
        dictionaries = [task.source_dictionary, task.target_dictionary]
    files = _files(state.get("cfg"))
    if len(files) == len(dictionaries):  # else another kind of task: whether its model will do, fairseq says
        for file, dictionary in zip(files, dictionaries, strict=True):
            _compare(path, file, dictionary.symbols)
    if (take_source_prior := getattr(task, "take_source_prior", None)) is not None:
        take_source_prior(path, state)


def _files(cfg: Any) -> list[str]:
    """Where the dictionaries of a checkpoint's training were, by its options, which older ones have by now, too."""
    try:
        folder = data_folder(str(cfg.task.data))
        return [os.path.join(folder, name) for name in dictionaries_of(cfg.task, folder)]
    except (AttributeError, OmegaConfBaseException):  # options that name no data, or refer to what is not there
        return []


def _compare(path: str, file: str, expected: Sequence[str]) -> None:
    """Raise DataError where the dictionary `file` has as many symbols as `expected`, but others."""
    if not os.path.isfile(file):
        return
    try:
        symbols = load_dictionary(file).symbols
    except DataError:  # it is not what the training read
        return
    if len(symbols) != len(expected):
        return
    for number, (theirs, ours) in enumerate(zip(symbols, expected, strict=True)):
        if theirs != ours:
            raise DataError(
                f"{path}: expected a model over the words of the data at hand, found one that was trained with another "
                f"dictionary: {place(file, number - len(SPECIALS) + 1)} has {shown(theirs)}, the data {shown(ours)}; "
                "give models that were trained with the dictionaries of the data folder, or, if the model's own are no "
                "longer where its training found them, the folder that has them with --model-overrides "
                "\"{'data': 'DATA-BIN'}\""
            )


class Marker(Protocol):
    """Who finds in a line what a system requires of its translation, and marks tokens (evidence/group_slots.py)."""

    def read_for(self, lines: Sequence[str]) -> None:
        """Read files now, where one of these lines needs them, so that what is wrong with them is no fault of it."""

    def marked(self, tokens: Sequence[int], cells: Sequence[str] = ()) -> list[int]:
        """The tokens of a source, with marks. cells: what stands behind it, with tabs."""
        raise NotImplementedError


class OpenDictionary(Dictionary):
    """fairseq's dictionary over words that may be more."""

    def __init__(
        self, dictionary: Dictionary, words: OpenWords, index: Callable[[str], int | None] | None = None
    ) -> None:
        """
        Args:
            words: they begin with those of `dictionary`.
            index: the id of a word; None for one that stays <unk>. None: every word has one.
        """
        self.__dict__.update(dictionary.__dict__)
        self._words = words
        self._index = index or words.index
        self.marker: Marker | None = None  # of the source, where a system requires strings

    def __getitem__(self, index: int) -> str:
        index = plain(int(index))
        return self._words.symbols[index] if index < len(self._words.symbols) else self.unk_word

    def index(self, sym: str) -> int:
        token = self._index(sym)
        return self.unk() if token is None else token

    def encode_line(self, line: str, *args: Any, **options: Any) -> Tensor:
        """As fairseq's; where there is a marker, with marks. It gets the cells behind tabs of this line."""
        if self.marker is None:
            return super().encode_line(line, *args, **options)
        text, *cells = line.rstrip("\n").split("\t")
        tokens: Tensor = super().encode_line(text, *args, **options)
        marked = self.marker.marked(tokens.tolist(), [cell for cell in cells if cell.strip()])
        return torch.tensor(marked, dtype=torch.long)

    def add_symbol(self, word: str, n: int = 1, overwrite: bool = False) -> int:
        """The id of a word. The dictionary never grows, as fairseq's does while it prints translations."""
        return self.index(word)


def with_unk(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """The tokens with <unk> for strings outside the dictionary, without marks: all that a table of rows can read."""
    tokens = plain(tokens)
    return tokens.masked_fill(tokens >= len(dictionary), dictionary.unk())


def reads_strings(embedding: nn.Module) -> bool:
    """Whether strings outside the dictionary are more than <unk> to it."""
    return any(getattr(part, "reads_strings", False) for part in embedding.modules())
