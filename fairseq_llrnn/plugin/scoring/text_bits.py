"""Exact bits of a text under a language model, ours or fairseq's. With an open vocabulary, unknown words are spelled.

Sizes: B batch, T time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evaluation.line_scorer import LineScorer
from fairseq_llrnn.plugin.compat.loading import RECORDED, Places
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.scoring.sentences import Scorer, load_scorer


class TextScorer(LineScorer):
    """Scores lines of words under a language model of fairseq."""

    def __init__(self, scorer: Scorer) -> None:
        self.model, self.task = scorer.model, scorer.task
        self.dictionary, decoder = scorer.task.target_dictionary, scorer.model.decoder
        head = decoder.head if isinstance(decoder, LogLinearDecoder) else None
        super().__init__(
            self.dictionary.symbols,
            None if head is None else head.prior,
            None if head is None else head.open_words,
            scorer.device,
            longest=scorer.limits[1],
            max_tokens=scorer.max_tokens,
            dictionaries=scorer.dictionaries,
        )

    def predict(self, previous: Tensor) -> Callable[[Tensor], Tensor]:
        decoder = self.model.decoder
        if isinstance(decoder, LogLinearDecoder):
            _, extra = decoder(previous)
            return partial(decoder.head.target_log_probs, extra["batch"])
        log_probs = self.model.get_normalized_probs(decoder(previous), log_probs=True)
        return lambda target: log_probs.gather(2, target.unsqueeze(2)).squeeze(2)

    def next_log_probs(self, previous: Tensor) -> Tensor:
        decoder = self.model.decoder
        if isinstance(decoder, LogLinearDecoder):
            _, extra = decoder(previous)
            return decoder.head.word_log_probs(extra["batch"])[0, -1, : self.num_words]
        log_probs: Tensor = self.model.get_normalized_probs(decoder(previous), log_probs=True)
        return log_probs[0, -1]


def load_text_scorer(path: str, max_tokens: int, places: Places = RECORDED) -> TextScorer:
    """Load a text scorer from a checkpoint of a language model.

    Raises:
        DataError, PriorError: as `load_scorer`. OptionError: also for a translation model.
    """
    scorer = load_scorer(path, max_tokens, places)
    if scorer.languages is not None:
        raise OptionError(
            f"{path}: expected a language model, found a translation model; score translations with `llrnn rescore`"
        )
    return TextScorer(scorer)
