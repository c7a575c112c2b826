"""Strings outside the dictionary, with ids from V on, in a head with an open vocabulary: input ids and scores.

Sizes: V words, O open classes, N positions or targets, m strings, F features, H hidden width.

An `OpenMixture` scores the open classes, given a hidden state: the probability of a word outside the dictionary, and
of each class. The background gives <unk> the weight b(K, <unk>), of which class o has the share π_o. So Z has a term
b(K, <unk>) π_o exp(aᵀφ(o)) for each class, and with

    s(K)    =  log Σ_o π_o exp(aᵀφ(o))                   the score of <unk>, instead of aᵀφ(<unk>)
    r_o(K)  =  π_o exp(aᵀφ(o)) / exp s(K)

    p(<unk> | K)  =  b(K, <unk>) exp s(K) / Z            p(w | K)  =  p(<unk> | K) Σ_o r_o(K) P_o(w)

For the rest of the output layer, <unk> is a class like any other, except that its score is no product of a row and the
hidden state. So every background, evidence and search works unchanged. <unk> is alone in its signature, and only its
score changes. So the head replaces the score of the signature, and backgrounds need no context class for it
(output/context_classes.py would give every state its own masses, even if the background has few entries).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.exact_buffers import ExactBuffers
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.open_vocabulary.spelled import SpelledStrings
from fairseq_llrnn.open_vocabulary.speller import Speller
from fairseq_llrnn.open_vocabulary.speller_sizes import SpellerSizes
from fairseq_llrnn.open_vocabulary.vocabulary import NEURAL, OpenVocabulary
from fairseq_llrnn.output.class_source import ClassSource, Head
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.feature_weights import SparseRows, at_least_float32, row_scores

if TYPE_CHECKING:
    from fairseq_llrnn.output.records import Batch, RowPair


class OpenMixture(ExactBuffers):
    """<unk> as the open classes, with the scores log π_o + aᵀφ(o)."""

    log_shares: Tensor  # (O,)

    def __init__(self, vocabulary: OpenVocabulary, unk_class: int, names: Sequence[str] = ()) -> None:
        """Build the rows of an open vocabulary.

        Args:
            unk_class: the signature of <unk>, which no other word has.
            names: of the features of the output layer (F), which may include features of later parts.
        """
        super().__init__()
        self.rows = SparseRows(vocabulary.features.with_names(names))
        self.of_class = unk_class
        self.keep(log_shares=torch.from_numpy(vocabulary.log_shares.copy()).float())

    def composed(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Return rows (O, H') and biases (O,) of the classes, given weight (F, H') and bias (F,) of LogLinearOutput."""
        biases = self.rows.compose(at_least_float32(bias).unsqueeze(1)).squeeze(1)
        return self.rows.compose(weight), biases + self.log_shares.to(biases.dtype)

    def mean_features(self, scores: Tensor, names: Sequence[str]) -> dict[str, float]:
        """Return the expected features E_r[φ] of <unk> at one position, by name (F). scores: of the classes, (O,)."""
        shares = scores.double().softmax(-1)
        mean = (shares @ self.rows.dense().to(shares)).tolist()
        return {name: value for name, value in zip(names, mean, strict=True) if value != 0.0}


def log_spelling(scores: Tensor, log_strings: Tensor) -> Tensor:
    """Return log Σ_o r_o P_o(w): scores (N, O), log P_o(w) (N, O) -> (N,)."""
    return (functional.log_softmax(scores, dim=-1) + log_strings.to(scores.dtype)).logsumexp(-1)


NO_SPELLER = (
    "--speller-… needs a prior whose open vocabulary is spelled by a network; build it with "
    "`llrnn prior --open-vocabulary neural`, or leave the speller's sizes and dropout out"
)


class OpenWords(ClassSource):
    """The open classes of a head, which score <unk>, and the strings with ids."""

    name = "open_words"

    def __init__(
        self, mixture: OpenMixture, table: OpenTable, num_words: int, unk: int, speller: Speller | None = None
    ) -> None:
        """Build the source of a mixture.

        Args:
            table: the ids of strings.
            num_words: V.
            unk: the token for strings outside the dictionary.
            speller: a network that spells strings, in addition to the n-grams.
        """
        super().__init__()
        self.mixture, self.table, self.num_words, self.unk, self.speller = mixture, table, num_words, unk, speller
        self.replaces = mixture.of_class
        self._string_rows: tuple[Tensor, ...] = ()  # of the table, on the device of the last tokens

    @classmethod
    def of(cls, head: Head, table: OpenTable | None, sizes: SpellerSizes | None = None) -> OpenWords:
        """Build the source of a head. sizes: of the speller (None: the default ones).

        Raises:
            OptionError: sizes without a speller, or no table.
        """
        if table is None or (sizes is not None and table.vocabulary.kind != NEURAL):
            raise OptionError(NO_SPELLER)
        speller = None
        if table.vocabulary.kind == NEURAL:
            spelled = head.prior.session.memoize("spelled", lambda: SpelledStrings(table.vocabulary, table.words))
            speller = Speller(spelled, head.hidden_size, sizes or SpellerSizes())
        names = head.prior.output.features.names
        mixture = OpenMixture(table.vocabulary, int(head.output.class_of[head.unk]), names)
        return cls(mixture, table, head.num_words, head.unk, speller)

    # ---- text -------------------------------------------------------------------------------------------------------

    def string_rows(self, ids: Tensor) -> list[Tensor]:
        """Return `OpenTable.rows` of the strings with these ids (n,), all at least V."""
        rows, ready = self.table.rows(), self._string_rows
        if not ready or len(ready[0]) < len(rows[0]) or ready[0].device != ids.device:
            ready = self._string_rows = tuple(torch.from_numpy(row).to(ids.device) for row in rows)
        return [row[ids - self.num_words] for row in ready]

    def input_id_of(self, tokens: Tensor, read: Tensor) -> Tensor:
        """Replace strings beyond the dictionary in `read` by V + o, with o their most probable class."""
        outside = tokens >= self.num_words
        _, classes, _ = self.string_rows(tokens[outside])
        return read.masked_scatter(outside, self.num_words + classes)

    def restore_original_tokens(self, tokens: Tensor, text: Tensor) -> Tensor:
        """Replace aliases in `text` by their words, as in the training text of b."""
        outside = tokens >= self.num_words
        _, _, words = self.string_rows(tokens[outside])
        return text.masked_scatter(outside, torch.where(words < 0, self.unk, words))

    # ---- scores -----------------------------------------------------------------------------------------------------

    def rows(
        self, head: Head, weight: Tensor, layer: ContextClasses | None, source_states: Tensor | None
    ) -> tuple[RowPair, Tensor | None]:
        """Return the rows of the open classes, and in training 0 as a function of every weight of the speller."""
        zero = self.speller.untouched() if self.speller is not None and self.training else None
        return self.mixture.composed(weight, head.output.bias), zero

    def scores(self, hidden: Tensor, rows: tuple[RowPair, Tensor | None]) -> Tensor:
        """Return scores whose log Σ exp is the score of the replaced signature: (B, T, H') -> (B, T, O)."""
        return row_scores(hidden, *rows[0])

    def finish(self, log_prob: Tensor, batch: Batch, targets: Tensor, classes: Tensor) -> Tensor:
        """Return log p of the targets (N,), with the spelling of strings beyond the dictionary that are no slots."""
        assert batch.open_scores is not None
        scores, zero = batch.open_scores.flatten(0, 1), batch.rows.of_source[self.name][1]
        if zero is not None:
            log_prob = log_prob + zero.to(log_prob.dtype)
        outside = (targets >= self.num_words) & (classes == self.replaces)
        places = outside.nonzero().squeeze(1)
        if len(places) == 0:
            return log_prob
        ids = targets[places]
        log_strings, _, _ = self.string_rows(ids)
        if self.speller is not None:
            states = batch.hidden.flatten(0, 1)[places, : self.speller.hidden_size]
            log_strings = self.speller.log_strings(states, ids.cpu().numpy(), log_strings)
        return log_prob.index_add(0, places, log_spelling(scores[places], log_strings).to(log_prob.dtype))

    def explained(self, batch: Batch, arguments: dict[str, Any]) -> dict[str, Any]:
        assert batch.open_scores is not None
        return {"opened": (self.mixture, batch.open_scores[0])}

    # ---- strings for <unk> ------------------------------------------------------------------------------------------

    def strings(self, hidden: Tensor, classes: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
        """Return the ids of strings of classes (m,), none of them a word of the dictionary: (m,).

        Args:
            hidden: the predicting states, (m, H or more).
            random: to sample them. None: the most probable ones that a search finds (`Speller`).
        """
        strings = np.zeros(len(classes), dtype=np.int64)
        left = np.ones(len(classes), dtype=bool)  # strings that n-grams spell
        if self.speller is not None:
            left = self.speller.write(self.table, hidden[:, : self.speller.hidden_size], classes, random, strings)
        for o in np.unique(classes[left]).tolist():
            chosen = left & (classes == o)
            strings[chosen] = self.table.spelt(o) if random is None else self.table.drawn(o, int(chosen.sum()), random)
        return strings
