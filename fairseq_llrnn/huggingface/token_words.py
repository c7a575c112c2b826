"""The tokens of a tokenizer as words of a prior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.counted_slots import QuotaSlots
from fairseq_llrnn.features.dictionary import EOS, PAD, PADDING_ENTRY, SPECIALS, UNK
from fairseq_llrnn.huggingface.background_weights import NO_WORD
from fairseq_llrnn.output.context_classes import strings_in
from fairseq_llrnn.prior.prior import Prior

NAMED = 5  # words, of all that a message is about


def dictionary_of(tokenizer: Any) -> list[str]:
    """The symbols of a prior over a tokenizer's tokens: for `build_prior`."""
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    left_out = {*SPECIALS, *tokenizer.all_special_tokens}
    return [*SPECIALS, *(token for token in tokens if token not in left_out)]


def words_of_tokens(tokenizer: Any, prior: Prior) -> Tensor:
    """The prior's word of each token, (K,). NO_WORD where it has none.

    Strings that sources have offered by now (`encode_source`) are words, too.

    Raises:
        DataError: a word that is no token, or a tokenizer without an end of sentence.
    """
    if tokenizer.eos_token_id is None:
        raise DataError(
            "words_of_tokens: expected a tokenizer with an end of sentence, which backgrounds weigh, found none; set "
            "its eos_token"
        )
    symbols = prior.session.target.symbols
    words = numbers_of_tokens(tokenizer, symbols)
    special = {symbols.index(symbol) for symbol in SPECIALS}
    missing = sorted({*range(len(prior.symbols))} - {*words.tolist()} - special)
    missing = [at for at in missing if not PADDING_ENTRY.fullmatch(symbols[at])]
    if missing:
        some = ", ".join(repr(symbols[at]) for at in missing[:NAMED]) + (", …" if len(missing) > NAMED else "")
        raise DataError(
            "words_of_tokens: expected each of the prior's words to be one token of the tokenizer, found "
            f"{len(missing):,} that are none: {some}; build the prior over dictionary_of(tokenizer)"
        )
    return words


def numbers_of_tokens(tokenizer: Any, symbols: Sequence[str]) -> Tensor:
    """The number of each token among symbols, (K,). NO_WORD for none. Special tokens are matched by their use."""
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
    return torch.tensor(words)


def check_terms(background: BoundBackground, words: Tensor, prior: Prior) -> None:
    """Raise DataError for a required term that no token is a form of."""
    layer = strings_in(background)
    if layer is None or not isinstance(layer.source, QuotaSlots):
        return
    groups = layer.source.groups
    sayable = torch.isin(groups.strings, words)  # shape: (B, J)
    lacking = groups.must & ~(groups.member & sayable.unsqueeze(2)).any(1)  # shape: (B, G)
    if bool(lacking.any()):
        sentence, group = lacking.nonzero()[0].tolist()
        forms = groups.strings[sentence][groups.member[sentence, :, group]].tolist()
        symbols = prior.session.target.symbols
        some = ", ".join(repr(symbols[form]) for form in forms[:NAMED])
        raise DataError(
            f"BackgroundProcessor: expected a form of each required term among the model's tokens, found none of "
            f"{some} (source {sentence + 1}); give a form that is one token, or leave the term out"
        )
