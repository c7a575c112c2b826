"""Strings outside the dictionary, whose ids begin at V: how a head with an open vocabulary reads and scores them.

Sizes: V words, O open classes, N targets, H hidden width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.open_vocabulary.mixture import OpenMixture, log_spelling
from fairseq_llrnn.open_vocabulary.speller import Speller, speller_of
from fairseq_llrnn.open_vocabulary.table import OpenTable
from fairseq_llrnn.output.class_source import ClassSource, Head
from fairseq_llrnn.output.context_classes import ContextClasses

if TYPE_CHECKING:
    from fairseq_llrnn.output.records import Batch, RowPair

NO_SPELLER = (
    "--speller-…: expected a prior whose open vocabulary is spelled by a network, found another; "
    "build it with `llrnn prior --open-vocabulary neural`, or leave the speller's sizes and dropout out"
)


class OpenWords(ClassSource):
    """The open classes of a head, whose score is that of <unk>, and the strings that have ids so far."""

    name = "open_words"
    opens = True

    def __init__(
        self, mixture: OpenMixture, table: OpenTable, num_words: int, unk: int, speller: Speller | None = None
    ) -> None:
        """The source of a mixture.

        Args:
            table: the ids of strings.
            num_words: V.
            unk: the token that stands for strings outside the dictionary.
            speller: of strings, beside the n-grams.
        """
        super().__init__()
        self.mixture, self.table, self.num_words, self.unk, self.speller = mixture, table, num_words, unk, speller
        self.replaces = mixture.of_class

    @classmethod
    def of(cls, head: Head, table: OpenTable | None, told: Any = None, beside: int | None = None) -> OpenWords:
        """The source of a head; told and beside as of `open_words` (prior/parts/open_vocabulary.py).

        Raises:
            OptionError: told or beside, where no speller of the prior reads them; no table.
        """
        speller = None if table is None else speller_of(head, table, told, beside)
        if table is None or (speller is None and (told, beside) != (None, None)):
            raise OptionError(NO_SPELLER)
        mixture = OpenMixture(table.vocabulary, int(head.output.class_of[head.unk]))
        source = cls(mixture, table, head.num_words, head.unk, speller)
        source.reads_beside = beside is not None
        return source

    # ---- text -------------------------------------------------------------------------------------------------------

    def read_as(self, tokens: Tensor, read: Tensor) -> Tensor:
        """The tokens `read` with V + o in the place of strings beyond the dictionary, o the class they look like."""
        outside = tokens >= self.num_words
        if not bool(outside.any()):
            return read
        classes = torch.from_numpy(self.table.read_as(tokens[outside].cpu().numpy())).to(read)
        return read.masked_scatter(outside, self.num_words + classes)

    def in_text(self, tokens: Tensor, text: Tensor) -> Tensor:
        """The tokens `text` with words in the place of their aliases: as in the text that b is estimated from."""
        outside = tokens >= self.num_words
        words = torch.from_numpy(self.table.words_of(tokens[outside].cpu().numpy())).to(text)
        return text.masked_scatter(outside, torch.where(words < 0, self.unk, words))

    # ---- scores -----------------------------------------------------------------------------------------------------

    def rows(
        self, head: Head, weight: Tensor, layer: ContextClasses | None, source_states: Tensor | None
    ) -> tuple[RowPair, Tensor | None]:
        """Those of the open classes; and 0, of which every weight of the speller is a part, in training."""
        zero = self.speller.untouched() if self.speller is not None and self.training else None
        return self.mixture.composed(weight, head.output.bias), zero

    def scores(self, hidden: Tensor, rows: tuple[RowPair, Tensor | None]) -> Tensor:
        return self.mixture.scores(hidden, rows[0])

    def finish(self, log_prob: Tensor, batch: Batch, targets: Tensor, classes: Tensor) -> Tensor:
        """log p of the targets (N,), where that of <unk> stands for strings beyond the dictionary that are no slots."""
        scores, zero = batch.kept[self.name].flatten(0, 1), batch.rows.of_source[self.name][1]
        if zero is not None:
            log_prob = log_prob + zero.to(log_prob.dtype)
        outside = (targets >= self.num_words) & (classes == self.replaces)
        places = outside.nonzero().squeeze(1)
        if len(places) == 0:
            return log_prob
        ids = targets[places].cpu().numpy()
        log_strings = torch.from_numpy(self.table.log_probs(ids)).to(scores.device)
        if self.speller is not None:
            states = batch.spelled_from.flatten(0, 1)[places, : self.speller.hidden_size]
            log_strings = self.speller.log_strings(states, ids, log_strings)
        return log_prob.index_add(0, places, log_spelling(scores[places], log_strings).to(log_prob.dtype))

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Take weights of older checkpoints, which were called `speller`."""
        old = f"{prefix}speller."
        for name in [name for name in state_dict if name.startswith(old)]:
            state_dict[f"{prefix}{self.name}.speller.{name.removeprefix(old)}"] = state_dict.pop(name)

    def explained(self, batch: Batch, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"opened": (self.mixture, batch.kept[self.name][0])}

    # ---- strings in the place of <unk> ------------------------------------------------------------------------------

    def strings(self, hidden: Tensor, classes: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
        """The ids of strings of some classes (m,), none of them a word of the dictionary: (m,).

        Args:
            hidden: what predicts them, (m, H or more).
            random: to draw them, as probable as they are; None: the most probable ones that a search comes upon
                (spelling.py, speller.py).
        """
        strings = np.zeros(len(classes), dtype=np.int64)
        left = np.ones(len(classes), dtype=bool)  # what n-grams spell
        if self.speller is not None:
            left = self.speller.write(self.table, hidden[:, : self.speller.hidden_size], classes, random, strings)
        for o in np.unique(classes[left]).tolist():
            these = left & (classes == o)
            strings[these] = self.table.spelt(o) if random is None else self.table.drawn(o, int(these.sum()), random)
        return strings
