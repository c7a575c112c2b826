"""Experts, opened with the words of a prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairseq_llrnn.experts.expert import Expert
from fairseq_llrnn.experts.panel import Panel
from fairseq_llrnn.features.dictionary import BOS, EOS, PAD, UNK
from fairseq_llrnn.prior.prior import Prior


def open_experts(experts: Sequence[Expert], prior: Prior, source_word_of: Callable[[int], str] | None = None) -> Panel:
    """The experts of a head (LogLinearHead, `experts`), opened.

    Args:
        source_word_of: the string of a source token, where the network reads a source; its special symbols have the
            numbers of the target's.

    Raises:
        DataError: one cannot be opened.
    """
    target, pad, eos = prior.session.target, prior.index(PAD), prior.index(EOS)
    many = prior.open_words is not None  # <unk> stands for many words
    offers = bool(prior.offered_kinds) and source_word_of is not None

    def token_of(word: str) -> int | None:
        if word == UNK and many:
            return None
        return target.index(word) if offers else target.known_index.get(word)

    ignored = frozenset() if source_word_of is None else frozenset((prior.index(BOS), pad, eos))
    word_of = target.symbols.__getitem__
    return Panel(experts, prior, word_of, token_of, source_word_of, eos=eos, pad=pad, ignored=ignored)
