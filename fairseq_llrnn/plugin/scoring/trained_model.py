"""A trained model in Python: scores, surprisals, explanations and samples (`fairseq_llrnn.load`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch
from fairseq.dataclass.configs import GenerationConfig

from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.evaluation.texts import NATS
from fairseq_llrnn.evaluation.training_words import training_words
from fairseq_llrnn.explain.explanation import Explanation
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.plugin.compat.loading import Places, encode
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearModel
from fairseq_llrnn.plugin.scoring.explainer import KINDS, Explainer
from fairseq_llrnn.plugin.scoring.sentences import load_scorer
from fairseq_llrnn.plugin.scoring.text import TextScorer

MAX_TOKENS = 2048  # of a batch
PER = ("word", "character", "sentence", "text")


class Surprisal(NamedTuple):
    """A word, or the end of a sentence (`</s>`)."""

    sentence: int  # from 1
    position: int  # from 1
    word: str
    surprisal: float  # −log p, inf for an impossible word
    is_seen: bool | None  # whether the training text has it; None: not known


class TrainedModel:
    """A language model or a translation model in evaluation mode."""

    def __init__(self, path: str, data: str | None = None, prior: str | None = None) -> None:
        """Load a checkpoint, or a folder of `llrnn export`.

        Args:
            data, prior: folders instead of those that the training recorded.

        Raises:
            DataError: no such file, or a checkpoint that is damaged, holds code, or is of another kind.
            OptionError: its data or its prior is not found. PriorError: the prior does not fit.
        """
        self._scorer = load_scorer(path, MAX_TOKENS, Places(data, prior, options="{}"))
        self.model, self.task = self._scorer.model, self._scorer.task
        self.translates = self._scorer.languages is not None
        self._text: TextScorer | None = None if self.translates else TextScorer(self._scorer)
        self._convention = CONVENTIONS.get("" if self._text is None else self._text.pieces or "")

    # ---- scores -----------------------------------------------------------------------------------------------------

    def score(
        self, lines: Iterable[str], *, source: Sequence[str] | None = None, unit: str = "bits", per: str = "word"
    ) -> float:
        """Return the surprisal of a text, divided by its words, characters or sentences. Ends of sentences count.

        Args:
            lines: tokenised sentences. source: of each line, for a translation model.
            unit: `bits` or `nats`. per: `word`, `character`, `sentence`, or `text` for the sum.

        Raises:
            OptionError: another unit, or a missing or superfluous `source`. DataError: no line, or an impossible word.
        """
        if per not in PER:
            raise OptionError(f"per={per!r}: expected one of {', '.join(PER)}")
        sums = dict.fromkeys(PER, 0)
        total = 0.0
        for row in self.surprisals(lines, source=source, unit=unit):
            if math.isinf(row.surprisal):
                raise DataError(
                    f"sentence {row.sentence}, word {row.position}: the model gives {row.word!r} no probability; "
                    "surprisals() has the other words"
                )
            total += row.surprisal
            sums["sentence" if row.word == EOS else "word"] += 1
            # a word is followed by a blank or by the end of the line
            sums["character"] += int(row.position == 1) if row.word == EOS else len(row.word) + 1
        if not sums["sentence"]:
            raise DataError("expected a sentence, found none; give a list of lines")
        return total / {**sums, "text": 1}[per]

    def surprisals(
        self, lines: Iterable[str], *, source: Sequence[str] | None = None, unit: str = "bits"
    ) -> list[Surprisal]:
        """Return a row for each word and each end of a sentence; a word in pieces has one row.

        Args, Raises: as `score`; an impossible word has an infinite surprisal.
        """
        if unit not in NATS:
            raise OptionError(f"unit={unit!r}: expected one of {', '.join(NATS)}")
        lines = self._lines(lines, source)
        rows = self._of_text(lines) if source is None else self._of_translations(lines, source)
        return [row._replace(surprisal=row.surprisal / NATS[unit]) for row in rows]

    @cached_property
    def _training_words(self) -> frozenset[str] | None:
        return training_words(self._scorer.dictionaries[0], self._convention)

    def _of_text(self, lines: Sequence[str]) -> Iterator[Surprisal]:
        assert self._text is not None
        seen = self._training_words
        for line in self._text.lines(lines):
            if line.too_long_for is not None:
                raise DataError(
                    f"line {line.number}: expected at most {line.too_long_for:,} words, which is what the model was "
                    f"made for, found {len(line.words):,}; break the line"
                )
            for position, (word, log_prob) in enumerate(line.per_word(self._convention), start=1):
                is_seen = None if seen is None else word == EOS or word in seen
                yield Surprisal(line.number, position, word, -log_prob, is_seen)

    def _of_translations(self, lines: Sequence[str], source: Sequence[str]) -> Iterator[Surprisal]:
        dictionary = self.task.target_dictionary
        scored = {number: rest for number, *rest in self._scorer.token_scores(source, lines)}
        for number, line in enumerate(lines):
            if number not in scored:
                raise DataError(f"line {number + 1}, or its source, is longer than the model allows; break it")
            tokens, log_probs = scored[number]
            # a word that a slot spells in several pieces is one token
            words = [*line.split(), EOS]
            words = words if len(words) == len(tokens) else [dictionary[token] for token in tokens.tolist()]
            for position, (word, log_prob) in enumerate(zip(words, log_probs.tolist(), strict=True), start=1):
                yield Surprisal(number + 1, position, word, -log_prob, None)

    def _lines(self, lines: Iterable[str], source: Sequence[str] | None) -> list[str]:
        if isinstance(lines, str) or isinstance(source, str):
            raise OptionError("expected a list of sentences, found a text; give [text], or text.splitlines()")
        lines = list(lines)
        if self.translates and source is None:
            raise OptionError("source: a translation model needs the source sentence of each line; give source=[…]")
        if source is not None and not self.translates:
            raise OptionError("source: a language model reads no source; leave it out")
        if source is not None and len(source) != len(lines):
            raise DataError(f"source: expected {len(lines):,} sentences, one for each line, found {len(source):,}")
        return lines

    # ---- explanations and samples -----------------------------------------------------------------------------------

    def explain(self, line: str, *, source: str | None = None, top: int = 5) -> list[Explanation]:
        """Explain the probability of each word of a sentence and of its end, as `llrnn explain` does.

        Args:
            source: the sentence that it translates. top: number of predictions and features.

        Raises:
            OptionError: a model without a prior, or a missing source.
        """
        if not isinstance(self.model, LogLinearModel):
            raise OptionError("explain: expected a log-linear model, found one without features; use surprisals()")
        self._lines([line], None if source is None else [source])
        explainer: Explainer = next(kind for kind in KINDS if isinstance(self.model, kind.model_class))(
            self.model, self.task
        )
        return explainer.explain(line.split(), top, None if source is None else source.split())

    @torch.inference_mode()
    def sample(
        self, n: int = 1, *, source: str | None = None, temperature: float = 1.0, max_length: int = 100, seed: int = 1
    ) -> list[str]:
        """Return n sentences that are drawn from the model.

        Args:
            source: the sentence to translate. temperature: divides the scores; 1 is the model's distribution.
            max_length: in words. seed: of the draws; equal seeds give equal sentences.

        Raises:
            OptionError: n or max_length below 1, or a missing source.
        """
        check_least("n", n, 1)
        check_least("max_length", max_length, 1)
        self._lines([], None if source is None else [])
        options = GenerationConfig(beam=1, sampling=True, temperature=temperature, max_len_a=0.0, max_len_b=max_length)
        dictionary = self.task.target_dictionary
        tokens = torch.tensor([dictionary.eos()])
        if source is not None:
            tokens = encode(self.task.source_dictionary, source.split())
        tokens = tokens.to(self._scorer.device).expand(n, -1)
        net_input: dict[str, Any] = {"src_tokens": tokens}
        net_input["src_lengths"] = torch.full((n,), tokens.size(1), device=tokens.device)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            generator = self.task.build_generator([self.model], options)
            drawn = self.task.inference_step(generator, [self.model], {"net_input": net_input})
        sentences = ([dictionary[token] for token in each[0]["tokens"].tolist()] for each in drawn)
        return [" ".join(word for word in words if word != EOS) for words in sentences]
