"""Backgrounds beside models of transformers: a logits processor for `generate`.

Sizes: N hypotheses, B sentences, T tokens written, L source length, K tokens of the model or its tokenizer, W words
and strings of a session, C columns of a background.

A background weighs words of its prior's dictionary, and a model writes tokens. So each word has to be one token, of
the same spelling: a prior for a model is built over that model's own tokens (`dictionary_of`), and a grammar is
written in them (`"Ġhow" "Ġmany"`). Special tokens are matched by what they are for.

`PrefixStates` are the states of hypotheses in a search that reorders them without saying how. `generate` hands a
model, and a logits processor, all tokens that each hypothesis has written. What a state machine says depends on these
and on the hypothesis' sentence alone. So a state is looked up by them among those of the step before, and goes on by
the last token; where it is not found there, the prefix is read from its beginning. Either way it is the state of that
very prefix.

The `BackgroundProcessor` takes any background, on any model that ends in a softmax, without training:

    p'(x | K)  =  p(x | K) b(K, x) / Σ_y p(y | K) b(K, y)                       p of the model, b of a prior

    words = words_of_tokens(tokenizer, prior)
    model.generate(**inputs, max_new_tokens=20, logits_processor=[BackgroundProcessor(prior, words, longest=20)])

A grammar is a mask, n-grams multiply, required terms are said. p' sums to one at each step, so that the
score of a beam search is Σ log p'. Where strings may not end anywhere, words after which no end is in reach are taken
away behind the normalisation, as in our own searches (Background.within). What a model trained with the background
would do else than such a product: docs/guides/huggingface.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.errors import DataError, check_least
from fairseq_llrnn.evidence.counted_slots import QuotaSlots
from fairseq_llrnn.features.dictionary import EOS, PAD, PADDING_ENTRY, SPECIALS, UNK
from fairseq_llrnn.head.checks import check_source_ids
from fairseq_llrnn.output.context_classes import strings_in
from fairseq_llrnn.prior.prior import Prior

NO_WORD = -1  # of a token that the prior does not know
NAMED = 5  # words, of all that a message is about


def dictionary_of(tokenizer: Any) -> list[str]:
    """The symbols of a prior over a tokenizer's tokens: for `build_prior`."""
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    left_out = {*SPECIALS, *tokenizer.all_special_tokens}
    return [*SPECIALS, *(token for token in tokens if token not in left_out)]


def words_of_tokens(tokenizer: Any, prior: Prior) -> Tensor:
    """The prior's word of each token, (K,); NO_WORD where it has none.

    Strings that sources have offered by now (`encode_source`) are words, too.

    Raises:
        DataError: a word that is no token; a tokenizer without an end of sentence.
    """
    symbols = prior.session.target.symbols
    if tokenizer.eos_token_id is None:
        raise DataError(
            "words_of_tokens: expected a tokenizer with an end of sentence, which backgrounds weigh, found none; set "
            "its eos_token"
        )
    number = {symbol: at for at, symbol in enumerate(symbols) if symbol not in SPECIALS}
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    special_tokens = tokenizer.all_special_tokens
    words = [NO_WORD if token in special_tokens else number.get(token, NO_WORD) for token in tokens]
    for token, symbol in (
        (tokenizer.unk_token_id, UNK),
        (tokenizer.pad_token_id, PAD),
        (tokenizer.eos_token_id, EOS),  # the last: some tokenizers pad with it
    ):
        if token is not None:
            words[token] = symbols.index(symbol)
    missing = sorted({*range(len(prior.symbols))} - {*words} - {symbols.index(one) for one in SPECIALS})
    missing = [at for at in missing if not PADDING_ENTRY.fullmatch(symbols[at])]
    if missing:
        some = ", ".join(repr(symbols[at]) for at in missing[:NAMED]) + (", …" if len(missing) > NAMED else "")
        raise DataError(
            "words_of_tokens: expected each of the prior's words to be one token of the tokenizer, found "
            f"{len(missing):,} that are none: {some}; build the prior over dictionary_of(tokenizer)"
        )
    return torch.tensor(words)


def by_token(values: Tensor, columns: Tensor, prior: Prior) -> Tensor:
    """Values of a background's columns for words and strings by their numbers: (N, C) -> (N, W); −inf where none is.

    Args:
        columns: the word of each column, (1, C) or (N, C): those of the dictionary, then strings that sources offer.
    """
    num_words, width = len(prior.symbols), len(prior.session.target.symbols)
    if width == values.size(1) == num_words:
        return values
    wide = nn.functional.pad(values[:, :num_words], (0, width - num_words), value=NEGATIVE_INFINITY)
    if values.size(1) == num_words:
        return wide
    strings = columns[:, num_words:].expand(len(values), -1)  # void places among them have no value
    return wide.scatter_reduce(1, strings, values[:, num_words:], "amax")


def only_behind_the_end(log_p: Tensor, ended: Tensor, allowed: Tensor) -> Tensor:
    """log p (N, K) in which nothing but the `allowed` tokens, (K,), may follow what has ended, (N,).

    Nor what has no probability: a beam search may keep such a hypothesis, where a grammar has fewer.
    """
    over = (ended | log_p.isnan().any(1) | log_p.isneginf().all(1)).unsqueeze(1)
    return torch.where(over & allowed, 0.0, log_p.masked_fill(over, NEGATIVE_INFINITY))


States = TypeVar("States")


class PrefixStates(Generic[States]):
    """States of the prefixes that were asked for last."""

    def __init__(
        self,
        start: Callable[[int], States],
        advance: Callable[[States, Tensor], States],
        select: Callable[[States, Tensor], States],
        unread: int,
    ) -> None:
        """
        Args:
            start: of N hypotheses that have written nothing; row i is of the i-th one's sentence, in every step.
            advance: by one token each, (N,). select: rows (M,) of states.
            unread: how many tokens at the beginning are not read: a start symbol, or a prompt.
        """
        self.start, self.advance, self.select, self.unread = start, advance, select, unread
        self._last: tuple[Tensor, States] | None = None
        self.read_anew = 0  # how many steps read their prefixes from the beginning

    def of(self, written: Tensor, sentence: Tensor) -> States:
        """The states of the prefixes (N, T).

        Args:
            sentence: the number of each hypothesis' sentence, (N,): `start` gives equal ones the same state.
        """
        keys = torch.cat([sentence.unsqueeze(1), written], dim=1)
        states = self._gone_on(keys)
        if states is None:
            self.read_anew += 1
            states = self.start(len(written))
            for tokens in written[:, self.unread :].unbind(1):
                states = self.advance(states, tokens)
        self._last = keys, states
        return states

    def goes_on(self, written: Tensor, sentence: Tensor) -> bool:
        """Whether each prefix is one of those of the step before, and a token."""
        return self._parents(torch.cat([sentence.unsqueeze(1), written], dim=1)) is not None

    def goes_back(self, written: Tensor, sentence: Tensor) -> bool:
        """Whether each prefix is longer than what is not read, and the beginning of one of the step before."""
        length = written.size(1)
        if self._last is None or not self.unread < length < self._last[0].size(1):
            return False
        before = {row.tobytes() for row in _rows(self._last[0][:, : length + 1])}
        return before.issuperset(row.tobytes() for row in _rows(torch.cat([sentence.unsqueeze(1), written], dim=1)))

    def _parents(self, keys: Tensor) -> list[int] | None:
        """The row of each prefix, but for its last token, in the step before; None where one is not there."""
        if self._last is None or self._last[0].size(1) + 1 != keys.size(1):
            return None
        number_of = {row.tobytes(): number for number, row in enumerate(_rows(self._last[0]))}
        numbers = [number_of.get(row.tobytes(), -1) for row in _rows(keys[:, :-1])]
        return None if -1 in numbers else numbers

    def _gone_on(self, keys: Tensor) -> States | None:
        """From the states before; None where one of the prefixes is not among them."""
        numbers = self._parents(keys)
        if self._last is None or numbers is None or keys.size(1) - 1 <= self.unread:
            return None
        parents = torch.tensor(numbers, device=keys.device)
        return self.advance(self.select(self._last[1], parents), keys[:, -1])


def _rows(keys: Tensor) -> np.ndarray:
    return np.ascontiguousarray(keys.cpu().numpy())


class BackgroundProcessor:
    """log p of all tokens -> log p' (module docstring)."""

    def __init__(
        self, prior: Prior, words: Tensor, *, unread: int | None = None, longest: int | None = None,
        source: Tensor | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            words: the prior's word of each token of the model, (K,), of `words_of_tokens`; −1 forbids a token.
            unread: how many tokens the background does not read, padding on the left included. None: those that a
                generation begins with, which are the start symbol of a decoder or the prompts of a batch.
            longest: the most tokens that may follow them, the end included; None: no limit.
            source: (B, L) in the prior's numbers (`LogLinearHead.encode_source`), where it knows a source.

        Raises:
            OptionError: `unread` below 0. DataError: words or sources of another prior, or words without an end; a
            required term none of whose forms is a token; no complete string is short enough.
        """
        if unread is not None:
            check_least("unread", unread, 0)
        end, most = prior.index(EOS), len(prior.session.target.symbols)
        if not isinstance(words, Tensor) or not bool((words == end).any()) or int(words.max()) >= most:
            raise DataError(
                "BackgroundProcessor: expected the prior's word of each token, `</s>` among them, found "
                f"{'others' if isinstance(words, Tensor) else f'a {type(words).__name__}'}; give "
                "words_of_tokens(tokenizer, prior), with this very prior"
            )
        if source is not None:
            check_source_ids(prior, source)
        self.prior, self.words, self.longest = prior, words, longest
        self.finds_unread = unread is None
        self.sentences = None if source is None else len(source)
        self.background = prior.background(has_source=source is not None).bind(source)
        self.end, self.pad = end, prior.index(PAD)
        self.states = PrefixStates(self._start, self._advance, Tensor.__getitem__, unread or 0)
        self._refuse_unsayable()
        needed = int(self.background.steps_to_end(self.background.start(self.sentences or 1)).max())
        if longest is not None and needed > longest:
            raise DataError(
                f"BackgroundProcessor: expected `longest` of at least {needed}, which a complete string needs, found "
                f"{longest}; give more"
            )

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """input_ids: (N, T), all that is written. scores: (N, K), logits or log p. Returns log p', (N, K).

        Raises:
            DataError: less than `unread` tokens are written; the background forbids what it reads of a prompt; the
                hypotheses are not of the sources; a search that goes back, whose prompt nobody knows.
        """
        sentence = self._sentence(len(input_ids))
        begins = not self.states.goes_on(input_ids, sentence)
        if begins and self.finds_unread:
            if self.states.goes_back(input_ids, sentence):
                raise DataError(
                    f"BackgroundProcessor: expected a longer text at each step, found {input_ids.size(1)} tokens of "
                    "the last one (assisted generation, or a similar prompt); give `unread`, the length of the prompt"
                )
            self.states.unread = input_ids.size(1)
        unread = self.states.unread
        if input_ids.size(1) < unread:
            raise DataError(
                f"BackgroundProcessor: expected at least the {unread} tokens that are not read, found "
                f"{input_ids.size(1)} written; give `unread`, the length of the prompt"
            )
        if scores.size(1) > len(self.words):  # some models have more columns than their tokenizer has tokens
            more = self.words.new_full((scores.size(1) - len(self.words),), NO_WORD)
            self.words = torch.cat([self.words, more])
        if begins:
            self._refuse_forbidden(input_ids[:, unread:])
        states = self.states.of(input_ids, sentence)
        log_b = self._of_tokens(self.background.log_weights(states), states)
        ended = self.words[input_ids[:, unread:]].eq(self.end).any(1)
        log_p = (scores + log_b.to(scores.dtype)).log_softmax(1)
        if self.longest is not None:
            limited = self.background.with_max_length(self.longest - (input_ids.size(1) - unread))
            if limited is not self.background:
                reachable = self._of_tokens(limited.log_shares(states), states)
                log_p = log_p.masked_fill(reachable.isneginf(), NEGATIVE_INFINITY)
        return only_behind_the_end(log_p, ended, self.words.eq(self.end))

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

    def _refuse_forbidden(self, prompts: Tensor) -> None:
        """Raise DataError for a token of prompts (N, T) to which the background gives no weight, up to their end."""
        states = self._start(len(prompts))
        ended = torch.zeros(len(prompts), dtype=torch.bool, device=prompts.device)
        for place, tokens in enumerate(prompts.unbind(1)):
            weights = self._of_tokens(self.background.log_weights(states), states).expand(len(tokens), -1)
            wrong = weights.gather(1, tokens.unsqueeze(1)).squeeze(1).isneginf() & ~ended
            if bool(wrong.any()):
                raise DataError(
                    f"BackgroundProcessor: expected prompts that the background allows, found token "
                    f"{int(tokens[wrong][0])}, which it forbids, at place {self.states.unread + place}; leave `unread` "
                    "out, and no prompt is read"
                )
            states, ended = self._advance(states, tokens), ended | self.words[tokens].eq(self.end)

    def _refuse_unsayable(self) -> None:
        """Raise DataError for a required term that no token is a form of."""
        layer = strings_in(self.background)
        if layer is None or not isinstance(layer.source, QuotaSlots):
            return
        groups = layer.source.groups
        sayable = torch.isin(groups.strings, self.words)  # shape: (B, J)
        lacking = groups.must & ~(groups.member & sayable.unsqueeze(2)).any(1)  # shape: (B, G)
        if bool(lacking.any()):
            sentence, group = lacking.nonzero()[0].tolist()
            forms = groups.strings[sentence][groups.member[sentence, :, group]].tolist()
            symbols = self.prior.session.target.symbols
            some = ", ".join(repr(symbols[form]) for form in forms[:NAMED])
            raise DataError(
                f"BackgroundProcessor: expected a form of each required term among the model's tokens, found none of "
                f"{some} (source {sentence + 1}); give a form that is one token, or leave the term out"
            )
