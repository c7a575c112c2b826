"""Constraints and other backgrounds on models of transformers: a logits processor for `generate`.

Sizes: N hypotheses, B sentences, T tokens written, L source length, K tokens of the model or its tokenizer, W words
and strings of a session.

    processor = BackgroundProcessor.from_regex(r"[0-9]{3}-[0-9]{4}", tokenizer)
    processor.generate(model, **inputs, max_new_tokens=20)
    model.generate(**inputs, max_new_tokens=20, logits_processor=[processor])      # the limit may cut the text off

A processor takes any model that ends in a softmax, without training:

    p'(x | K)  =  p(x | K) b(K, x) / Σ_y p(y | K) b(K, y)                       p of the model, b of the background

A grammar is a mask, n-grams multiply, required terms are written. p' sums to one at each step, so that the score of a
beam search is Σ log p'. If `longest` is given, b = 0 for tokens after which no end is in reach, so that p' is a
distribution over the texts within the limit. Our own models mask such tokens after the normalisation
(Background.with_max_length). Their beams then have the log p of the model, which ranks the texts that end in time. A
factor for each step would change the ranks.

A hypothesis that cannot go on before its text is complete (a dead end) is ended with log p DEAD_END. A beam search then
prefers any complete text. Dead ends exist in products whose parts are not one automaton, and under other processors.

`from_regex`, `from_json_schema`, `from_tools`, `from_grammar`, `from_words`, `from_terms` and `from_ngram` take any
fast tokenizer (constructors.py). Products, mixtures and rows of processors are processors. If a text is that of the
step before with a forbidden token, it is a new prompt.
The constructor takes the background of a prior each of whose words is one token of the same spelling: the prior is
built over the model's own tokens (`dictionary_of`). Special tokens are matched by what they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.features.dictionary import EOS, PAD
from fairseq_llrnn.head.checks import check_source_ids
from fairseq_llrnn.huggingface.background_weights import BackgroundWeights
from fairseq_llrnn.huggingface.batch_rows import RowWeights
from fairseq_llrnn.huggingface.byte_automata import USUAL_LIMITS, Limits, Meter
from fairseq_llrnn.huggingface.combinations import common_options, constraints_of
from fairseq_llrnn.huggingface.combined_weights import MixtureWeights, ProductWeights
from fairseq_llrnn.huggingface.constructors import MakesConstraints
from fairseq_llrnn.huggingface.free_text import FreeTextWeights, Tag
from fairseq_llrnn.huggingface.healing import HealsPrompts
from fairseq_llrnn.huggingface.limited_search import LimitedSearch, requires_end, weights_within
from fairseq_llrnn.huggingface.normalisation import end_rows_, normalised, rows_in_time
from fairseq_llrnn.huggingface.prefix_states import PrefixStates
from fairseq_llrnn.huggingface.required_terms import RequiredTerms
from fairseq_llrnn.huggingface.token_texts import TokenTexts
from fairseq_llrnn.huggingface.token_weights import FREE, Row, TokenAutomaton, TokenWeights
from fairseq_llrnn.huggingface.token_words import check_terms
from fairseq_llrnn.output.normalisers import check_scores
from fairseq_llrnn.prior.prior import Prior

try:
    from transformers import LogitsProcessor
except ImportError:  # scores of another search
    LogitsProcessor = object

__all__ = ["BackgroundProcessor", "Limits", "Tag"]


class BackgroundProcessor(MakesConstraints, LimitedSearch, HealsPrompts, LogitsProcessor):
    """log p of all tokens -> log p' (module docstring).

    `a * b` is the product of two processors, and `BackgroundProcessor.mixture([a, b], [0.3, 0.7])` a mixture.
    `BackgroundProcessor.per_row([a, None, b])` has one for each row of a batch, and None for a free row.
    """

    def __init__(
        self, prior: Prior, words: Tensor, *, unread: int | None = None, longest: int | None = None,
        source: Tensor | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            words: the prior's word of each token of the model, (K,), of `words_of_tokens`. −1 forbids a token.
            unread: how many tokens the background does not read, padding on the left included. None: those that a
                generation begins with, which are the start symbol of a decoder or the prompts of a batch.
            longest: the most tokens that may follow them, the end included. None: no limit.
            source: (B, L) in the prior's numbers (`LogLinearHead.encode_source`), if the background depends on one.

        Raises:
            OptionError: `unread` below 0. DataError: words or sources of another prior, words without an end, a
            required term none of whose forms is a token, or no complete string is short enough.
        """
        end, most = prior.index(EOS), len(prior.session.target.symbols)
        if not isinstance(words, Tensor) or not bool((words == end).any()) or int(words.max()) >= most:
            raise DataError(
                "BackgroundProcessor: expected the prior's word of each token, `</s>` among them, found "
                f"{'others' if isinstance(words, Tensor) else f'a {type(words).__name__}'}; give "
                "words_of_tokens(tokenizer, prior), with this very prior"
            )
        if source is not None:
            check_source_ids(prior, source)
        background = prior.background(has_source=source is not None).bind(source)
        check_terms(background, words, prior)
        weights = BackgroundWeights(
            background, words, end, prior.index(PAD), 1 if source is None else len(source), prior
        )
        self._set(weights, int((words == end).nonzero()[0]), unread, longest, None if source is None else len(source))

    def _set(
        self, weights: TokenWeights, eos: int, unread: int | None, longest: int | None, sentences: int | None = None
    ) -> None:
        if unread is not None:
            check_least("unread", unread, 0)
        if longest is not None:
            check_least("longest", longest, 1)
            weights = weights_within(weights, longest, sentences)
        self.weights, self.eos, self.longest, self.sentences = weights, eos, longest, sentences
        self.finds_unread = unread is None
        self.by_ends = {}
        self.states: PrefixStates[Any] = PrefixStates(
            weights.start,
            lambda states, tokens: weights.advance(states, np.minimum(tokens.cpu().numpy(), weights.num_tokens)),
            lambda states, rows: weights.select(states, rows.cpu().numpy()),
            unread or 0,
        )

    @classmethod
    def _from_weights(
        cls, weights: TokenWeights, eos: int, unread: int | None, longest: int | None, sentences: int | None = None,
        texts: TokenTexts | None = None, tag: Tag | None = None, read: Callable[[str], Any] | None = None,
    ) -> Self:  # fmt: skip
        if tag is not None and texts is not None:
            weights = FreeTextWeights(weights, tag, texts)
        processor = cls.__new__(cls)
        processor._set(weights, eos, unread, longest, sentences)
        processor.texts, processor.read = texts, read
        return processor

    # ---- several ----------------------------------------------------------------------------------------------------

    @classmethod
    def product(
        cls, processors: Sequence[BackgroundProcessor], *, limits: Limits = USUAL_LIMITS, unread: int | None = None,
        longest: int | None = None,
    ) -> BackgroundProcessor:  # fmt: skip
        """Multiply the weights of processors: a token needs weight in each of them.

        Sets of texts on one tokenizer become one automaton, so that every text can be completed. With a Lark grammar,
        a canonical set or a prior in it, dead ends are possible. Then each part alone is completed within `longest`.

        Args:
            limits: of the automaton.
            unread, longest: as in the constructor. By default those of the processors, the least one of `longest`.

        Raises:
            DataError: no processors, or processors of other tokenizers, or sets without a common text. LimitError: they
            cost too much together.
        """
        unread, longest, sentences, texts = common_options("product", processors, unread, longest)
        constraints, tag = constraints_of("product", processors)
        parts: list[TokenWeights] = []
        for constraint in constraints:
            parts += constraint.parts if isinstance(constraint, ProductWeights) else [constraint]
        sets = [part for part in parts if part.bytes]
        terms = [part for part in sets if isinstance(part, RequiredTerms)]
        if texts is not None and len(terms) > 1 and len(terms) == len(sets):
            required = RequiredTerms([automaton for part in terms for automaton in part.parts], texts.eos)
            parts = [required, *(part for part in parts if not part.bytes)]
        elif texts is not None and len(sets) > 1:
            meter = Meter("product", limits)
            whole, *others = [automaton for part in sets for automaton in part.bytes]
            for automaton in others:
                whole = whole.intersection(automaton, meter)
            both = TokenAutomaton.of_set(whole, texts, meter)
            parts = [both, *(part for part in parts if not part.bytes)]
        weights = parts[0] if len(parts) == 1 else ProductWeights(parts)
        read = next((processor.read for processor in processors if processor.read is not None), None)
        return cls._from_weights(weights, processors[0].eos, unread, longest, sentences, texts, tag, read)

    def __mul__(self, other: BackgroundProcessor) -> BackgroundProcessor:
        if not isinstance(other, BackgroundProcessor):
            return NotImplemented
        return self.product([self, other])

    @classmethod
    def mixture(
        cls, processors: Sequence[BackgroundProcessor], weights: Sequence[float], *, unread: int | None = None,
        longest: int | None = None,
    ) -> BackgroundProcessor:  # fmt: skip
        """Mix the weights of processors at each step: b = Σ w_i b_i.

        Args:
            weights: w_i > 0, one for each processor. They need not sum to one, as p' is normalised.
            unread, longest: as in `product`.

        Raises:
            OptionError: other weights. DataError: no processors, or processors of other tokenizers.
        """
        unread, longest, sentences, texts = common_options("mixture", processors, unread, longest)
        if len(weights) != len(processors) or not all(0 < weight < float("inf") for weight in weights):
            raise OptionError(
                f"mixture: expected a weight above 0 for each of {len(processors)} processors, found {list(weights)}"
            )
        constraints, tag = constraints_of("mixture", processors)
        mixed = MixtureWeights(constraints, weights)
        return cls._from_weights(mixed, processors[0].eos, unread, longest, sentences, texts, tag)

    @classmethod
    def per_row(
        cls, processors: Sequence[BackgroundProcessor | None], *, unread: int | None = None, longest: int | None = None
    ) -> Self:
        """Give each row of a batch a constraint of its own.

        Args:
            processors: one for each prompt of the batch, or None for a row without a constraint.
            unread: as in the constructor. By default that of the processors.
            longest: for all rows with a constraint. By default each row has that of its processor.

        Raises:
            DataError: no processors, processors of other tokenizers or of several sources, or too small a `longest`.
        """
        given = [processor for processor in processors if processor is not None]
        unread, _, sentences, texts = common_options("per_row", given, unread, longest)
        if sentences not in (None, 1):
            raise DataError(
                f"per_row: expected processors without sources, or with that of their row, found one with {sentences}; "
                "give the whole batch one processor"
            )
        parts = [None if processor is None else processor.weights for processor in processors]
        limits = [
            None if processor is None else processor.longest if longest is None else longest for processor in processors
        ]
        weights = RowWeights(parts, limits, given[0].eos)
        rows = cls._from_weights(weights, given[0].eos, unread, None, len(parts), texts)
        rows.of_rows = list(processors)
        return rows

    # ---- a step -----------------------------------------------------------------------------------------------------

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """input_ids: (N, T), all that is written. scores: (N, K), logits or log p. Returns log p', (N, K).

        Raises:
            DataError: less than `unread` tokens are written, the background forbids what it reads of a prompt, the
                hypotheses are not of the sources, or the text does not get longer at each step, without `unread`.
        """
        sentence = self._sentence(input_ids)
        if scores.size(1) < self.weights.num_tokens:
            raise DataError(
                f"BackgroundProcessor: expected scores of at least {self.weights.num_tokens:,} tokens, those of the "
                f"tokenizer, found {scores.size(1):,}; use the model's own tokenizer"
            )
        states = self.states.states_after(input_ids, sentence, lambda: self._begin(input_ids, sentence))
        rows = self.weights.rows(states, scores)
        if self.longest is not None:
            left = self.longest - (input_ids.size(1) - self.states.unread)
            reached = self.weights.in_reach(states, left)
            rows = rows_in_time(rows, reached, left, self.eos, self.weights.num_tokens, scores)
        kept = rows
        if self.other_ends is not None:
            lost = self.other_ends.to(scores.device)
            kept = [row if row is FREE else row.without(lost, scores) for row in rows]
        log_p, dead = normalised(kept, scores, self.weights.num_tokens)
        if dead:
            ended = self._have_ended(input_ids, rows)[dead]
            not_ended = [row for row, is_ended in zip(dead, ended.tolist(), strict=True) if not is_ended]
            if live := [row for row in not_ended if not rows[row].is_empty]:
                check_scores(scores[live].amax(1), "BackgroundProcessor")
            if required := [row for row in live if kept[row].is_empty]:
                ends = [] if self.other_ends is None else self.other_ends.nonzero().flatten().tolist()
                raise requires_end([end for end in ends if rows[required[0]].has(end)], self._spelled)
            if self._is_new_prompt(input_ids, sentence, dead, self._have_ended(input_ids[:, :-1], rows).tolist()):
                self.states.forget()
                return self(input_ids, scores)
            end_rows_(log_p, dead, ended, self.eos, self.eos)
        self.states.log_p = log_p.detach()
        return log_p

    def _have_ended(self, written: Tensor, rows: Sequence[Row]) -> Tensor:
        """Return whether hypotheses (N, T) with rows of weights have ended, (N,) bool.

        A free row ends with any end of the model. If these are unknown, any special token may be one.
        """
        written = written[:, self.states.unread :]
        ended = (written == self.eos).any(1)
        is_free = torch.tensor([row is FREE for row in rows], device=ended.device)
        if not is_free.any():
            return ended
        ends = self.other_ends
        if ends is None:
            texts = [b""] * self.weights.num_tokens if self.texts is None else self.texts.later
            ends = torch.tensor([text is None for text in texts])
        ends = torch.cat([ends, ends.new_zeros(1)]).to(written.device)  # the model may have more tokens
        return ended | (is_free & ends[written.clamp_max(self.weights.num_tokens)].any(1))

    def _is_new_prompt(
        self, written: Tensor, sentence: Tensor | None, dead: list[int], ended: list[bool]
    ) -> bool:  # fmt: skip
        """Return whether the prefixes are prompts, although those of the step before are their beginnings.

        Hypotheses of a search have a token each that was possible, and beams of one prompt differ.

        Args:
            dead: the rows without a possible token.
            ended: whether each row has ended before its last token.

        Raises:
            DataError: they are prompts only in part, or `unread` says that they are none.
        """
        parents, last = self.states.parents, self.states.log_p
        if parents is None or last is None or not self.states.are_alike(written, sentence):
            return False
        tokens = written[:, -1].tolist()
        wrong = [
            row for row in dead
            if not ended[row] and not (tokens[row] < last.size(1) and last[parents[row], tokens[row]].isfinite())
        ]  # fmt: skip
        if self.finds_unread and len(wrong) == len(written) - sum(ended):
            return bool(wrong)
        wrong = [row for row in wrong if self.texts is None or self.texts.text([tokens[row]])]  # padding is special
        if wrong:
            raise DataError(
                f"BackgroundProcessor: expected a text that the constraint allows, found token {tokens[wrong[0]]}, "
                f"which it forbids, at the end of row {wrong[0]}; for prompts that continue those of the last call, "
                "make a new processor, or give `unread`, the length of the prompt"
            )
        return False

    def _sentence(self, written: Tensor) -> Tensor | None:
        """Return the number of each hypothesis' sentence, (N,). None without sources."""
        if self.sentences is None:
            return None
        hypotheses = len(written)
        if hypotheses % self.sentences:
            raise DataError(
                f"BackgroundProcessor: expected as many hypotheses of each of the {self.sentences} sources or "
                f"constraints, found {hypotheses} hypotheses; give those of this very batch"
            )
        numbers = torch.arange(self.sentences, device=written.device)
        return numbers.repeat_interleave(hypotheses // self.sentences)

    def _begin(self, written: Tensor, sentence: Tensor | None) -> None:
        """Find how much is not read, and check what is."""
        if self.finds_unread:
            if self.states.is_shorter(written, sentence):
                raise DataError(
                    f"BackgroundProcessor: expected a longer text at each step, found {written.size(1)} tokens that, "
                    "without the last one, begin a text of the step before (assisted generation, or a prompt that "
                    "continues an earlier one); give `unread`, the length of the prompt"
                )
            self.states.unread = written.size(1)
        unread = self.states.unread
        if written.size(1) < unread:
            raise DataError(
                f"BackgroundProcessor: expected at least the {unread} tokens that are not read, found "
                f"{written.size(1)} written; give `unread`, the length of the prompt"
            )
        if self.sentences is not None:
            by_sentence = written[:, :unread].unflatten(0, (self.sentences, -1))
            if not bool((by_sentence == by_sentence[:, :1]).all()):
                raise DataError(
                    f"BackgroundProcessor: expected a batch of {self.sentences} sources or constraints, found "
                    f"{len(written)} hypotheses with other prompts; give one source or constraint for each prompt"
                )
        prompts = written[:, unread:].cpu().numpy()
        states = self.weights.start(len(written))
        ended, like = np.zeros(len(written), dtype=bool), torch.zeros(1)
        for place, tokens in enumerate(prompts.T):
            rows = self.weights.rows(states, like)
            allowed = [
                x < self.weights.num_tokens and row.has(x) for row, x in zip(rows, tokens.tolist(), strict=True)
            ]
            wrong = ~np.array(allowed) & ~ended
            if wrong.any():
                raise DataError(
                    f"BackgroundProcessor: expected prompts that the background allows, found token "
                    f"{tokens[wrong][0]}, which it forbids, at place {unread + place}; leave `unread` "
                    "out, and no prompt is read"
                )
            states, ended = self.weights.advance(states, tokens), ended | (tokens == self.eos)
