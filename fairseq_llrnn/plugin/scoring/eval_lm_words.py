"""Print the lines of a `Tally` in `llrnn eval-lm`, after fairseq's loss."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fairseq_cli.eval_lm

from fairseq_llrnn.evaluation.tally import Tally
from fairseq_llrnn.evaluation.training_words import training_words
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.plugin.compat.moved_folders import data_folder
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder

logger = logging.getLogger(__name__)


@contextmanager
def words_of_eval_lm(data: str | None) -> Iterator[None]:
    """Let fairseq's eval_lm print these lines after its own, inside the block.

    Args:
        data: the data folder, or several separated by colons (None: unknown).
    """
    tallies: list[Tally] = []

    def new_tally(decoder: Any) -> Tally:
        pieces = decoder.head.prior.settings.get("pieces") if isinstance(decoder, LogLinearDecoder) else None
        known = data is not None and pieces is None
        seen = training_words(Path(data_folder(str(data)), "dict.txt"), None) if known else None
        return Tally(decoder.dictionary.symbols, CONVENTIONS.get(pieces or ""), seen)

    def tallying(usual: type) -> type:
        class Scorer(usual):
            def generate(self, models: list[Any], sample: Any, **named: Any) -> Any:
                hypotheses = super().generate(models, sample, **named)
                if not tallies:
                    tallies.append(new_tally(models[0].decoder))
                for block in hypotheses:
                    tallies[0].add(block[0]["tokens"].tolist(), block[0]["positional_scores"].tolist())
                return hypotheses

        return Scorer

    with replaced(fairseq_cli.eval_lm, "SequenceScorer", tallying):
        yield
    for line in (line for tally in tallies for line in tally.lines()):
        logger.info(line)
