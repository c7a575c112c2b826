"""A trained model in Python: scores, surprisals, explanations and samples (`fairseq_llrnn.load`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.evaluation.scoring_model import ScoringModel
from fairseq_llrnn.evaluation.texts import LineScore
from fairseq_llrnn.evaluation.training_words import training_words
from fairseq_llrnn.explain.explanation import Explanation
from fairseq_llrnn.features.dictionary import EOS, SPECIALS
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.compat.loading import Places, encode
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearModel
from fairseq_llrnn.plugin.scoring.explainer import KINDS
from fairseq_llrnn.plugin.scoring.sentences import load_scorer
from fairseq_llrnn.plugin.scoring.text_bits import TextScorer

MAX_TOKENS = 2048  # of a batch


class TrainedModel(ScoringModel):
    """A language model or a translation model in evaluation mode."""

    def __init__(self, path: str, data: str | None = None, prior: str | None = None) -> None:
        """Load a checkpoint, or a folder of `llrnn export`.

        Args:
            data, prior: folders that override those of the training.

        Raises:
            DataError: no such file, or a checkpoint that is damaged, holds code, or is of another kind.
            OptionError: its data or its prior is not found. PriorError: the prior does not fit.
        """
        self._scorer = load_scorer(path, MAX_TOKENS, Places(data, prior, options="{}"))
        self.model, self.task = self._scorer.model, self._scorer.task
        self.vocabulary = frozenset(self.task.target_dictionary.symbols).difference(SPECIALS)
        self.translates = self._scorer.languages is not None
        self._text: TextScorer | None = None if self.translates else TextScorer(self._scorer)
        self._convention = CONVENTIONS.get("" if self._text is None else self._text.pieces or "")
        self.has_open_vocabulary = self._text is not None and self._text.has_open_vocabulary

    @cached_property
    def _training_words(self) -> frozenset[str] | None:
        return None if self.translates else training_words(self._scorer.dictionaries[0], self._convention)

    def _line_scores(self, lines: Sequence[str], source: Sequence[str] | None, is_open: bool) -> Iterator[LineScore]:
        if source is None:
            assert self._text is not None
            yield from self._text.lines(lines, is_open)
            return
        dictionary = self.task.target_dictionary
        scored = {number: scores for number, *scores in self._scorer.token_scores(source, lines)}
        for number, line in enumerate(lines):
            if number not in scored:
                raise DataError(f"line {number + 1}, or its source, is longer than the model allows; split it")
            tokens, log_probs = scored[number]
            # a slot that is spelled in several pieces is one token
            words = line.split()
            words = words if len(words) + 1 == len(tokens) else [dictionary[token] for token in tokens[:-1].tolist()]
            unknown = with_unk(tokens[:-1], dictionary).eq(dictionary.unk()).tolist()
            yield LineScore(number + 1, words, unknown, log_probs.tolist(), [0.0] * len(words))

    def _next_log_probs(self, prefix: str, source: str | None) -> tuple[Tensor, Callable[[int], str]]:
        if source is None:
            assert self._text is not None
            return self._text.after(prefix.split()), self.task.target_dictionary.__getitem__
        predictions = self.explain(prefix, source=source, top=len(self.task.target_dictionary))[-1].predictions
        return torch.tensor([log_prob for _, log_prob in predictions]), [word for word, _ in predictions].__getitem__

    # ---- explanations and samples -----------------------------------------------------------------------------------

    def explain(self, line: str, *, source: str | None = None, top: int = 5) -> list[Explanation]:
        """Explain the probability of each word of a sentence and of its end, like `llrnn explain`.

        Args:
            source: the sentence that it translates.
            top: number of predictions and features.

        Raises:
            OptionError: a model without a prior, or a missing source.
        """
        if not isinstance(self.model, LogLinearModel):
            raise OptionError("explain() needs a log-linear model, found one without features; use surprisals()")
        self._checked([line], None if source is None else [source])
        explainer = next(kind(self.model, self.task) for kind in KINDS if isinstance(self.model, kind.model_class))
        self.model.cpu()  # an explainer makes its tokens on the CPU
        try:
            return explainer.explain(line.split(), top, None if source is None else source.split())
        finally:
            self.model.to(self._scorer.device)

    @torch.inference_mode()
    def sample(
        self, n: int = 1, *, source: str | None = None, temperature: float = 1.0, max_length: int = 100, seed: int = 1
    ) -> list[str]:
        """Sample n sentences from the model.

        Args:
            source: the sentence to translate.
            temperature: divides the scores; 1 is the model's distribution.
            max_length: in words.
            seed: of the random numbers. Equal seeds give equal sentences.

        Raises:
            OptionError: n or max_length below 1, or a missing source.
        """
        check_least("n", n, 1)
        check_least("max_length", max_length, 1)
        self._checked([], None if source is None else [])
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
            sampled = self.task.inference_step(generator, [self.model], {"net_input": net_input})
        sentences = ([dictionary[token] for token in found[0]["tokens"].tolist()] for found in sampled)
        return [" ".join(word for word in words if word != EOS) for words in sentences]
