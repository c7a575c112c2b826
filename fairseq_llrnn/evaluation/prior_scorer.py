"""Scores of texts under the background of a prior alone, without a network: p(x | K) ∝ b(K, x).

    fairseq_llrnn.load(prior="data-bin/prior").score(lines)

This is the log-linear head with a = 0. With it, an n-gram prior is an n-gram language model. Weights of a background
that a network learns have their initial values. Cross-fitted n-grams are those of the whole text, as in any evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evaluation.line_scorer import LineScorer
from fairseq_llrnn.evaluation.scoring_model import ScoringModel
from fairseq_llrnn.evaluation.texts import LineScore
from fairseq_llrnn.evaluation.training_words import training_words
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.output.records import Batch
from fairseq_llrnn.prior.prior import Prior


class PriorScorer(LineScorer, ScoringModel):
    """The background of a prior as a language model."""

    _spelling_advice = "leave it out, or build the prior from Recipe(open_vocabulary=OpenOptions())"

    def __init__(self, prior: Prior, max_tokens: int = 2048) -> None:
        """
        Args:
            max_tokens: of a batch, padding included.

        Raises:
            OptionError: the background depends on a source or on a network.
        """
        place = prior.folder or "prior"
        problem = None
        if any(part.needs_source for part in prior.parts):
            problem = "depends on a source sentence"
        elif any(part.needs_fairseq for part in prior.parts):
            problem = "reads a trained model"
        else:
            self.head = LogLinearHead(prior, 1, initial_scale=0.0).eval()
            parts = [*self.head.background.modules()]
            if any(isinstance(part, Mixture) and part.weighting == "network" for part in parts):
                problem = "has weights that a network chooses at each word"
        strings = None if problem else self.head.open_words
        if strings is not None and strings.speller is not None:
            problem = "spells unknown words by a network"
        if problem:
            raise OptionError(
                f"{place}: expected a background that gives probabilities without a network and a source, found one "
                f"that {problem}; train a model with this prior and score that, or use another prior"
            )
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.head.to(device)
        folder = None if prior.folder is None else Path(prior.folder)
        data = None if folder is None else folder.absolute().parent / "dict.txt"
        is_in_data = data is not None and data.is_file() and load_dictionary(data).symbols == prior.symbols
        super().__init__(
            prior.symbols,
            prior,
            strings,
            device,
            longest=math.inf,
            max_tokens=max_tokens,
            dictionaries=[data] if is_in_data and data is not None else [],
        )
        self._convention = CONVENTIONS.get(self.pieces or "")

    @cached_property
    def _training_words(self) -> frozenset[str] | None:
        return training_words(self.dictionaries[0], self._convention) if self.dictionaries else None

    def _line_scores(self, lines: Sequence[str], source: Sequence[str] | None, is_open: bool) -> Iterator[LineScore]:
        return self.lines(lines, is_open)

    def _next_log_probs(self, prefix: str, source: str | None) -> tuple[Tensor, Callable[[int], str]]:
        return self.after(prefix.split()), self.head.prior.symbols.__getitem__

    def _batch(self, previous: Tensor) -> Batch:
        hidden = torch.zeros(*previous.shape, 1, device=self.device)
        return self.head.batch(hidden, self.head.bind(previous))

    def predict(self, previous: Tensor) -> Callable[[Tensor], Tensor]:
        return partial(self.head.target_log_probs, self._batch(previous))

    def next_log_probs(self, previous: Tensor) -> Tensor:
        return self.head.word_log_probs(self._batch(previous))[0, -1, : self.num_words]
