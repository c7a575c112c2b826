"""A logits processor for `generate`: any background, on any model that ends in a softmax, without training.

    p'(x | K)  =  p(x | K) b(K, x) / Σ_y p(y | K) b(K, y)                       p of the model, b of a prior

    words = words_of_tokens(tokenizer, prior)
    model.generate(**inputs, max_new_tokens=20, logits_processor=[BackgroundProcessor(prior, words, longest=20)])

A grammar is a mask, n-grams multiply, required terms are said. p' sums to one at each step, so that the
score of a beam search is Σ log p'. Where strings may not end anywhere, words after which no end is in reach are taken
away behind the normalisation, as in our own searches (Background.within). What a model trained with the background
would do else than such a product: docs/guides/huggingface.md.

Sizes: N hypotheses, B sentences, T tokens written, L source length, K tokens of the model, W words and strings.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.counted_slots import QuotaSlots
from fairseq_llrnn.features.dictionary import EOS, PAD
from fairseq_llrnn.huggingface.tokens import NAMED, NO_WORD, PrefixStates, by_token
from fairseq_llrnn.output.context_classes import strings_in
from fairseq_llrnn.prior.prior import Prior


class BackgroundProcessor:
    """log p of all tokens -> log p' (module docstring)."""

    def __init__(
        self, prior: Prior, words: Tensor, *, unread: int = 1, longest: int | None = None, source: Tensor | None = None
    ) -> None:
        """
        Args:
            words: the prior's word of each token of the model, (K,), of `words_of_tokens`; −1 forbids a token.
            unread: how many tokens the background does not read: 1, the start symbol of a decoder, or a whole prompt.
            longest: the most tokens that may follow them, the end included; None: no limit.
            source: (B, L) in the prior's numbers (`LogLinearHead.encode_source`), where it knows a source.

        Raises:
            DataError: a required term none of whose forms is a token; no complete string is short enough.
        """
        self.prior, self.words, self.unread, self.longest = prior, words, unread, longest
        background = prior.background(has_source=source is not None)
        self.sentences = None if source is None else len(source)
        self.background: Background = background if source is None else background.given(source)
        self.end, self.pad = prior.index(EOS), prior.index(PAD)
        self.states = PrefixStates(self._start, self._advance, Tensor.__getitem__, unread)
        self._refuse_unsayable()
        needed = int(self.background.steps_to_end(self.background.start(self.sentences or 1)).max())
        if longest is not None and needed > longest:
            raise DataError(
                f"BackgroundProcessor: expected `longest` of at least {needed}, which a complete string needs, found "
                f"{longest}; give more"
            )

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """input_ids: (N, T), all that is written. scores: (N, K), logits or log p. Returns log p', (N, K)."""
        states = self.states.of(input_ids, self._sentence(len(input_ids)))
        if scores.size(1) > len(self.words):  # some models have more columns than their tokenizer has tokens
            more = self.words.new_full((scores.size(1) - len(self.words),), NO_WORD)
            self.words = torch.cat([self.words, more])
        log_b = self._of_tokens(self.background.log_weights(states), states)
        log_p = (scores + log_b.to(scores.dtype)).log_softmax(1)
        if self.longest is not None:
            limited = self.background.within(self.longest - (input_ids.size(1) - self.unread))
            if limited is not self.background:
                reachable = self._of_tokens(limited.log_shares(states), states)
                log_p = log_p.masked_fill(reachable.isneginf(), NEGATIVE_INFINITY)
        # behind the end, and where a beam search keeps a hypothesis of probability zero, only the end may follow
        ended = self.words[input_ids[:, self.unread :]].eq(self.end).any(1)
        over = ended | log_p.isnan().any(1) | log_p.isneginf().all(1)
        log_p = log_p.masked_fill(over.unsqueeze(1), NEGATIVE_INFINITY)
        return torch.where(over.unsqueeze(1) & self.words.eq(self.end), 0.0, log_p)

    def _sentence(self, hypotheses: int) -> Tensor:
        """Which sentence each hypothesis is of: (N,)."""
        if self.sentences is None:
            return torch.zeros(hypotheses, dtype=torch.long, device=self.words.device)
        if hypotheses % self.sentences:
            raise DataError(
                f"BackgroundProcessor: expected as many hypotheses of each of the {self.sentences} sources, found "
                f"{hypotheses} hypotheses; give the sources of this very batch"
            )
        each = torch.arange(self.sentences, device=self.words.device)
        return each.repeat_interleave(hypotheses // self.sentences)

    def _start(self, hypotheses: int) -> Tensor:
        if self.sentences is None:
            return self.background.start(hypotheses)
        return self.background.start(self.sentences)[self._sentence(hypotheses)]

    def _advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        words = self.words[tokens]
        return self.background.advance(states, words.masked_fill(words == NO_WORD, self.pad))

    def _of_tokens(self, values: Tensor, states: Tensor) -> Tensor:
        """Values of the background's columns (N or 1, C) for the model's tokens: (N or 1, K); −inf for unknown ones."""
        values = by_token(values, self.background.columns(states), self.prior)
        return values[:, self.words.clamp_min(0)].masked_fill(self.words == NO_WORD, NEGATIVE_INFINITY)

    def _refuse_unsayable(self) -> None:
        """Raise DataError for a required term that no token is a form of."""
        layer = strings_in(self.background)
        if layer is None or not isinstance(layer.source, QuotaSlots):
            return
        slots = layer.source
        sayable = torch.isin(slots.slots.words, self.words)  # shape: (B, J)
        lacking = slots.must & ~(slots.member & sayable.unsqueeze(2)).any(1)  # shape: (B, G)
        if bool(lacking.any()):
            sentence, group = lacking.nonzero()[0].tolist()
            forms = slots.slots.words[sentence][slots.member[sentence, :, group]].tolist()
            symbols = self.prior.session.target.symbols
            some = ", ".join(repr(symbols[form]) for form in forms[:NAMED])
            raise DataError(
                f"BackgroundProcessor: expected a form of each required term among the model's tokens, found none of "
                f"{some} (source {sentence + 1}); give a form that is one token, or leave the term out"
            )
