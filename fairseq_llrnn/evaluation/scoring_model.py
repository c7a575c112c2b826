"""Scores of texts, surprisals of words and minimal pairs, the same for all models that score lines of words.

`ScoringModel` needs the scores of lines. plugin/scoring/trained_model.py has them for fairseq's models,
huggingface/scoring.py for those of transformers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fairseq_llrnn.errors import DataError, OptionError, check_choice
from fairseq_llrnn.evaluation.texts import NATS, LineScore, characters_of
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.features.subwords import Convention

PER = ("word", "token", "character", "sentence", "text")
TIE = 1e-6  # relative difference of two log p in float32 that counts as a tie


class Surprisal(NamedTuple):
    """A word, or the end of a sentence (`</s>`)."""

    sentence: int  # from 1
    position: int  # from 1
    word: str
    surprisal: float  # −log p, inf for an impossible word
    is_seen: bool | None  # whether the training text has it; None: unknown
    is_unknown: bool  # whether the dictionary lacks it, or one of its pieces


class SurprisalTable(list[Surprisal]):
    """A row for each word and each end of a sentence. `pandas.DataFrame(table)` has the fields as columns."""

    def to_tsv(self) -> str:
        """Return the rows with tabs between the fields, after a line of their names. None is an empty cell."""
        cells = [Surprisal._fields, *(["" if cell is None else cell for cell in row] for row in self)]
        return "".join("\t".join(map(str, row)) + "\n" for row in cells)


class MinimalPair(NamedTuple):
    """The log p of two sentences, in nats."""

    good: float
    bad: float
    is_correct: bool  # whether the good one is more probable; a tie is not


class MinimalPairs(NamedTuple):
    """The share of correct pairs, and all pairs in their order."""

    accuracy: float
    pairs: list[MinimalPair]


class ScoringModel:
    """A model that scores lines of words."""

    translates = False
    has_ends = True  # whether the end of a sentence is part of its score
    _convention: Convention | None = None  # of subword pieces that have blanks between them in the lines

    @property
    def _training_words(self) -> frozenset[str] | None:
        """The words of the training text. None: unknown."""
        return None

    def _line_scores(self, lines: Sequence[str], source: Sequence[str] | None) -> Iterable[LineScore]:
        """Return the score of every line, in their order."""
        raise NotImplementedError

    def score(
        self, lines: Iterable[str], *, source: Sequence[str] | None = None, unit: str = "bits", per: str = "word"
    ) -> float:
        """Return the surprisal of a text, divided by its words, tokens, characters or sentences.

        Ends of sentences count: in the sum, as a token, and as a character.

        Args:
            lines: tokenised sentences. source: of each line, for a translation model.
            unit: `bits` or `nats`.
            per: `word`, `token` (the model's own, such as pieces), `character`, `sentence`, or `text` for the sum.

        Raises:
            OptionError: another unit, or a missing or superfluous `source`.
            DataError: no line, or one that is too long or has an impossible word.
        """
        check_choice("per", per, PER)
        check_choice("unit", unit, NATS)
        sums = {**dict.fromkeys(PER, 0), "text": 1}
        nats = 0.0
        for line in self._fitting(lines, source):
            if line.impossible is not None:
                word = line.word(line.impossible)
                raise DataError(
                    f"sentence {line.number}, word {line.impossible + 1}: the model gives {word!r} no probability; "
                    "surprisals() has the other words"
                )
            *words, _ = line.per_word(self._convention)
            nats -= line.log_prob
            sums["sentence"] += 1
            sums["word"] += len(words)
            sums["token"] += sum(word.num_tokens for word in words) + self.has_ends
            sums["character"] += characters_of([word.word for word in words])
        if not sums["sentence"]:
            raise DataError("expected a sentence, found none; give a list of lines")
        if not sums[per]:
            raise DataError(f"per={per!r}: expected a {per}, found empty lines; give lines with words")
        return nats / NATS[unit] / sums[per]

    def surprisals(
        self, lines: Iterable[str], *, source: Sequence[str] | None = None, unit: str = "bits"
    ) -> SurprisalTable:
        """Return a row for each word and each end of a sentence. A word in pieces has one row.

        Args, Raises: as `score`. An impossible word has an infinite surprisal.
        """
        check_choice("unit", unit, NATS)
        table, seen = SurprisalTable(), self._training_words
        for line in self._fitting(lines, source):
            *words, end = line.per_word(self._convention)
            for position, (word, log_prob, _, is_unknown) in enumerate(words, start=1):
                is_seen = None if seen is None else word in seen
                table.append(Surprisal(line.number, position, word, -log_prob / NATS[unit], is_seen, is_unknown))
            if self.has_ends:
                is_seen = None if seen is None else True
                table.append(Surprisal(line.number, len(words) + 1, EOS, -end.log_prob / NATS[unit], is_seen, False))
        return table

    def minimal_pairs(
        self, good: Iterable[str], bad: Iterable[str], *, source: Sequence[str] | None = None
    ) -> MinimalPairs:
        """Return how often the good sentence of a pair is more probable than the bad one, and the log p of each.

        A tie is wrong. So is a difference below the precision of float32, in which log p is computed.

        Args:
            good, bad: a sentence of each pair, tokenised. source: of each pair, for a translation model.

        Raises:
            OptionError, DataError: as `score`; lists of different lengths. An impossible sentence has log p = −inf.
        """
        good, bad = (self._checked(lines, source) for lines in (good, bad))
        if len(good) != len(bad) or not good:
            raise DataError(
                f"expected as many good sentences as bad ones, found {len(good):,} and {len(bad):,}; give two lists "
                "of equal length"
            )
        lines, sources = [*good, *bad], None if source is None else [*source, *source]
        scores = [line.log_prob for line in self._fitting(lines, sources)]
        pairs = [
            MinimalPair(g, b, g > b and not math.isclose(g, b, rel_tol=TIE))
            for g, b in zip(scores[: len(good)], scores[len(good) :], strict=True)
        ]
        return MinimalPairs(sum(pair.is_correct for pair in pairs) / len(pairs), pairs)

    def _checked(self, lines: Iterable[str], source: Sequence[str] | None) -> list[str]:
        if isinstance(lines, str) or isinstance(source, str):
            raise OptionError("expected a list of sentences, found a text; pass [text], or text.splitlines()")
        lines = list(lines)
        others = [line for line in lines if not isinstance(line, str)]
        if others:
            raise OptionError(f"expected sentences, found {others[0]!r:.60}; join the words of each by blanks")
        if self.translates and source is None:
            raise OptionError("source: a translation model needs the source sentence of each line; give source=[…]")
        if source is not None and not self.translates:
            raise OptionError("source: a language model reads no source; leave it out")
        if source is not None and len(source) != len(lines):
            raise DataError(f"source: expected {len(lines):,} sentences, one for each line, found {len(source):,}")
        return lines

    def _fitting(self, lines: Iterable[str], source: Sequence[str] | None) -> Iterator[LineScore]:
        """Yield the scores of lines. Raises DataError for a line that is too long."""
        for line in self._line_scores(self._checked(lines, source), source):
            if line.too_long_for is not None:
                raise DataError(
                    f"line {line.number}: expected at most {line.too_long_for:,} words, the limit of the model, found "
                    f"{len(line.words):,}; break the line"
                )
            yield line
