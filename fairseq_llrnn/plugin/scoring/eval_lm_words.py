"""Print the loss of seen and unseen words, and bits per character, in `llrnn eval-lm`, in addition to fairseq's loss.

Bits per character can be compared between models of words and of pieces, like those of `llrnn score`. A word counts
with the blank or the line end after it. They are not defined if words are `<unk>`.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fairseq_cli.eval_lm

from fairseq_llrnn.evaluation.training_words import training_words
from fairseq_llrnn.features.subwords import CONVENTIONS, Convention
from fairseq_llrnn.plugin.compat.moved_folders import data_folder
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder

logger = logging.getLogger(__name__)
SEEN, UNSEEN, END = "seen words", "unseen words", "ends of sentences"


class Tally:
    """Sums over the tokens of a test text.

    Attributes:
        tokens, bits: by kind of word.
        characters: of words, blanks and line ends.
    """

    def __init__(self, dictionary: Any, convention: Convention | None, seen: frozenset[str] | None) -> None:
        """convention: of subword pieces. seen: the words of the training text (None: unknown, or pieces)."""
        self.dictionary, self.convention, self.seen = dictionary, convention, seen
        self.tokens, self.bits = Counter[str](), dict.fromkeys((SEEN, UNSEEN, END), 0.0)
        self.characters = self.unknown = 0

    def add(self, tokens: list[int], log_probs: list[float]) -> None:
        """Count the tokens of a block and their log p in nats. Impossible ones are left out, like in fairseq."""
        before = self.dictionary.eos()
        for token, log_prob in zip(tokens, log_probs, strict=True):
            word, is_end = self.dictionary[token], token == self.dictionary.eos()
            if token == self.dictionary.unk():
                self.unknown += 1
            elif is_end:
                self.characters += before == token  # an empty line
            else:
                self.characters += _width(word, self.convention)
            before = token
            if math.isfinite(log_prob):
                kind = END if is_end else SEEN if self.seen is None or word in self.seen else UNSEEN
                self.tokens[kind] += 1
                self.bits[kind] -= log_prob / math.log(2)

    def lines(self) -> Iterator[str]:
        """Yield the lines to print."""
        if self.seen is not None:
            yield "; ".join(
                f"{kind}: {count:,}, loss {self.bits[kind] / count:.4f}"
                for kind in (SEEN, UNSEEN, END)
                if (count := self.tokens[kind])
            )
        if self.unknown:
            yield f"Bits per character: not defined, because {self.unknown:,} words are <unk>; see `llrnn score --open`"
        elif self.characters:
            yield f"Bits per character: {sum(self.bits.values()) / self.characters:.4f}"


def _width(word: str, convention: Convention | None) -> int:
    """Count the characters of a word and the blank after it, or of a piece and the blank of its mark."""
    if convention is None:
        return len(word) + 1
    bare = len(convention.bare(word))
    return bare + (convention.is_marked(word) == convention.mark_begins)


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
        return Tally(decoder.dictionary, CONVENTIONS.get(pieces or ""), seen)

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
