"""Which token of a tokenizer of transformers is which word of a prior.

A background weighs words of its prior's dictionary, and a model writes tokens. So each word has to be one token, of the
same spelling: a prior for a model is built over that model's own tokens (`dictionary_of`), and a grammar is written in
them (`"Ġhow" "Ġmany"`). Special tokens are matched by what they are for.

Sizes: K tokens of the tokenizer, N hypotheses, C columns of a background, W words and strings of a session.

The states of hypotheses in a search that reorders them without saying how.

`generate` of transformers hands a model, and a logits processor, all tokens that each hypothesis has written. What a
state machine says depends on these and on the hypothesis' sentence alone. So a state is looked up by them among those
of the step before, and goes on by the last token; where it is not found there, the prefix is read from its beginning.
Either way it is the state of that very prefix.

Sizes: N hypotheses, T tokens written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import EOS, PAD, PADDING_ENTRY, SPECIALS, UNK
from fairseq_llrnn.prior.prior import Prior

NO_WORD = -1  # of a token that the prior does not know
NAMED = 5  # words, of all that a message is about


def dictionary_of(tokenizer: Any) -> list[str]:
    """The symbols of a prior over a tokenizer's tokens: for `Prior.build`."""
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

    def _gone_on(self, keys: Tensor) -> States | None:
        """From the states before; None where one of the prefixes is not among them."""
        if self._last is None or self._last[0].size(1) + 1 != keys.size(1) or keys.size(1) - 1 <= self.unread:
            return None
        number_of = {row.tobytes(): number for number, row in enumerate(_rows(self._last[0]))}
        numbers = [number_of.get(row.tobytes(), -1) for row in _rows(keys[:, :-1])]
        if -1 in numbers:
            return None
        parents = torch.tensor(numbers, device=keys.device)
        return self.advance(self.select(self._last[1], parents), keys[:, -1])


def _rows(keys: Tensor) -> np.ndarray:
    return np.ascontiguousarray(keys.cpu().numpy())
