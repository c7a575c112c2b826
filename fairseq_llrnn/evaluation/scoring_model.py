"""Scores of texts, surprisals of words and minimal pairs, the same for all models that score lines of words.

`ScoringModel` needs the scores of lines. plugin/scoring/trained_model.py has them for fairseq's models,
huggingface/scoring.py for those of transformers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairseq_llrnn.errors import DataError, OptionError, check_choice, check_least
from fairseq_llrnn.evaluation.texts import NATS, LineScore, characters_of
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.features.subwords import Convention
from fairseq_llrnn.features.text_check import PYTHON, TextCheck
from fairseq_llrnn.files.text_lines import BYTE_ORDER_MARK, text_only

if TYPE_CHECKING:
    from torch import Tensor

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

    def to_tsv(self) -> str:
        """Return the fields with tabs between them. None is an empty cell."""
        seen = "" if self.is_seen is None else self.is_seen
        return f"{self.sentence}\t{self.position}\t{self.word}\t{self.surprisal:.6f}\t{seen}\t{self.is_unknown}"


class SurprisalTable(list[Surprisal]):
    """A row for each word and each end of a sentence. `pandas.DataFrame(table)` has the fields as columns."""

    def to_tsv(self) -> str:
        """Return a line of the fields' names and the rows, as `llrnn score --per-word` prints them."""
        return "".join(f"{line}\n" for line in ["\t".join(Surprisal._fields), *(row.to_tsv() for row in self)])


def surprisals_of(
    line: LineScore, unit: str, seen: Collection[str] | None, convention: Convention | None, has_ends: bool = True
) -> Iterator[Surprisal]:
    """Yield a row for each word of a line, and for its end if the model `has_ends`.

    Args:
        unit: of NATS. seen: the words of the training text (None: unknown). convention: of subword pieces.
    """
    *words, end = line.per_word(convention)
    for position, (word, log_prob, _, is_unknown) in enumerate(words, start=1):
        is_seen = None if seen is None else word in seen
        yield Surprisal(line.number, position, word, -log_prob / NATS[unit], is_seen, is_unknown)
    if has_ends:
        is_seen = None if seen is None else True
        yield Surprisal(line.number, len(words) + 1, EOS, -end.log_prob / NATS[unit], is_seen, False)


class NextWord(NamedTuple):
    """A word that may come next, `<unk>` for all unknown words, or `</s>`. A model of pieces has pieces."""

    word: str
    probability: float


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
    has_open_vocabulary = False  # whether unknown words can be spelled
    vocabulary: frozenset[str] | None = None  # the words of the dictionary; None: a tokenizer splits any word
    _spelling_advice = "leave it out, or train with a prior of Recipe(open_vocabulary=OpenOptions())"
    _convention: Convention | None = None  # of subword pieces that have blanks between them in the lines

    @property
    def _training_words(self) -> frozenset[str] | None:
        """The words of the training text. None: unknown."""
        return None

    def _line_scores(self, lines: Sequence[str], source: Sequence[str] | None, is_open: bool) -> Iterable[LineScore]:
        """Return the score of every line, in their order."""
        raise NotImplementedError

    def _next_log_probs(self, prefix: str, source: str | None) -> tuple[Tensor, Callable[[int], str]]:
        """Return log p of all columns after a prefix, (V,), and the function from a column to its word."""
        raise NotImplementedError

    def score(
        self,
        lines: Iterable[str],
        *,
        source: Sequence[str] | None = None,
        unit: str = "bits",
        per: str = "word",
        is_open: bool = False,
    ) -> float:
        """Return the surprisal of a text, divided by its words, tokens, characters or sentences.

        Ends of sentences count: in the sum, as a token, and as a character.

        Args:
            lines: tokenised sentences. source: of each line, for a translation model.
            unit: `bits` or `nats`.
            per: `word`, `token` (the model's own, such as pieces), `character`, `sentence`, or `text` for the sum.
            is_open: whether unknown words are spelled, for a language model with an open vocabulary. By default they
                are `<unk>`. A translation model with an open vocabulary always spells them.

        Raises:
            OptionError: another unit, a missing or superfluous `source`, or `is_open` without an open vocabulary.
            DataError: no line, a treebank, or a line that is too long or has an impossible word.
        """
        check_choice("per", per, PER)
        check_choice("unit", unit, NATS)
        sums = {**dict.fromkeys(PER, 0), "text": 1}
        nats = 0.0
        for line in self._fitting(lines, source, is_open):
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
        self,
        lines: Iterable[str],
        *,
        source: Sequence[str] | None = None,
        unit: str = "bits",
        is_open: bool = False,
    ) -> SurprisalTable:
        """Return a row for each word and each end of a sentence. A word in pieces has one row.

        Args, Raises: as `score`. An impossible word has an infinite surprisal.
        """
        check_choice("unit", unit, NATS)
        seen, scored = self._training_words, self._fitting(lines, source, is_open)
        return SurprisalTable(
            row for line in scored for row in surprisals_of(line, unit, seen, self._convention, self.has_ends)
        )

    def minimal_pairs(
        self, good: Iterable[str], bad: Iterable[str], *, source: Sequence[str] | None = None, is_open: bool = False
    ) -> MinimalPairs:
        """Return how often the good sentence of a pair is more probable than the bad one, and the log p of each.

        A tie is wrong. So is a difference below the precision of float32, in which log p is computed.

        Args:
            good, bad: a sentence of each pair, tokenised. source: of each pair, for a translation model.
            is_open: as in `score`.

        Raises:
            OptionError, DataError: as `score`; lists of different lengths. An impossible sentence has log p = −inf.
        """
        good, bad = (self._checked(lines, source) for lines in (good, bad))
        if len(good) != len(bad) or not good:
            raise DataError(
                f"expected as many good sentences as bad ones, found {len(good):,} and {len(bad):,}; give two lists "
                "of equal length"
            )
        scores = []
        for name, lines in (("good", good), ("bad", bad)):
            try:
                scores.append([line.log_prob for line in self._fitting(lines, source, is_open)])
            except DataError as error:
                error.args = (f"{name}: {error}",)
                raise
        pairs = [MinimalPair(g, b, g > b and not math.isclose(g, b, rel_tol=TIE)) for g, b in zip(*scores, strict=True)]
        return MinimalPairs(sum(pair.is_correct for pair in pairs) / len(pairs), pairs)

    def next_words(self, prefix: str, k: int = 5, *, source: str | None = None) -> list[NextWord]:
        """Return the k most probable words after the words of a sentence so far, the most probable one first.

        Unknown words are `<unk>`, also in the prefix. Words of a translation are those of a search.

        Args:
            prefix: tokenised. "": the beginning of a sentence.
            source: the source sentence, for a translation model.

        Raises:
            OptionError: k below 1, or a missing or superfluous `source`.
        """
        check_least("k", k, 1)
        (prefix,) = self._checked([prefix], None if source is None else [source])
        log_probs, word = self._next_log_probs(prefix, source)
        best = log_probs.double().topk(min(k, len(log_probs)))
        pairs = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
        return [NextWord(word(column), probability) for column, probability in pairs if probability > 0.0]

    def _checked(self, lines: Iterable[str], source: Sequence[str] | None) -> list[str]:
        if isinstance(lines, str) or isinstance(source, str):
            raise OptionError("expected a list of sentences, found a text; pass [text], or text.splitlines()")
        lines = list(lines)
        if lines and isinstance(lines[0], str):
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        others = [line for line in lines if not isinstance(line, str)]
        if others:
            raise OptionError(f"expected sentences, found {others[0]!r:.60}; join the words of each by blanks")
        lines = [line for _, line in text_only(enumerate(lines, start=1), "lines")]
        if self.translates and source is None:
            raise OptionError("source: a translation model needs the source sentence of each line; give source=[…]")
        if source is not None and not self.translates:
            raise OptionError("source: a language model reads no source; leave it out")
        if source is not None and len(source) != len(lines):
            raise DataError(f"source: expected {len(lines):,} sentences, one for each line, found {len(source):,}")
        return lines

    def _fitting(self, lines: Iterable[str], source: Sequence[str] | None, is_open: bool) -> Iterator[LineScore]:
        """Yield the scores of lines, then warn if case or punctuation makes words unknown.

        Raises:
            OptionError, DataError: as `score`.
        """
        if is_open and not self.has_open_vocabulary:
            raise OptionError(
                "is_open: expected a language model with an open vocabulary, found another; "
                f"{'leave it out' if self.translates else self._spelling_advice}"
            )
        vocabulary = self.vocabulary
        check = TextCheck(vocabulary or (), PYTHON)
        for line in self._line_scores(self._checked(lines, source), source, is_open):
            if line.too_long_for is not None:
                raise DataError(
                    f"line {line.number}: expected at most {line.too_long_for:,} words, the limit of the model, found "
                    f"{len(line.words):,}; break the line"
                )
            if vocabulary is not None:
                check.add((word, 1) for word in line.words)
            yield line
        if (advice := check.advice("lines")) is not None:
            warnings.warn(advice, stacklevel=3)
