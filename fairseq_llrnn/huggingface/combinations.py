"""The attributes of processors, and what those of one combination have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from torch import Tensor

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface.free_text import FreeTextWeights, Tag
from fairseq_llrnn.huggingface.prefix_states import PrefixStates
from fairseq_llrnn.huggingface.token_texts import TokenTexts
from fairseq_llrnn.huggingface.token_weights import TokenWeights


class ProcessorParts:
    """What a BackgroundProcessor has, for the mixins that it is made of, and for combinations."""

    weights: TokenWeights[Any]
    eos: int
    texts: TokenTexts | None = None  # of the tokenizer, if there is one
    sentences: int | None
    states: PrefixStates[Any]
    finds_unread: bool
    longest: int | None
    other_ends: Tensor | None = None  # (K,) bool, tokens that end texts of a model, and none of the constraint
    by_ends: dict[tuple[int, ...], Self]  # the processors without other ends of a model
    read: Callable[[str], Any] | None = None  # of the text that is constrained. None: the text itself
    of_rows: Sequence[Self | None] | None = None  # of `per_row`
    _from_weights: Any
    per_row: Any


def common_options(
    kind: str, processors: Sequence[ProcessorParts], unread: int | None, longest: int | None
) -> tuple[int | None, int | None, int | None, TokenTexts | None]:
    """Return `unread`, `longest`, the number of sources and the texts of tokens of a combination.

    Raises:
        DataError: no processors, or processors of other tokenizers or batches.
    """
    if not processors:
        raise DataError(f"{kind}: expected at least one processor, found none")
    first = processors[0]
    for other in processors:
        if (other.weights.num_tokens, other.eos) != (first.weights.num_tokens, first.eos):
            raise DataError(
                f"{kind}: expected processors for one tokenizer, found {first.weights.num_tokens:,} tokens with the "
                f"end {first.eos} and {other.weights.num_tokens:,} with {other.eos}"
            )
    texts = [processor.texts for processor in processors if processor.texts is not None]
    if any(other is not texts[0] and other.spelled != texts[0].spelled for other in texts[1:]):
        raise DataError(f"{kind}: expected processors for one tokenizer, found two with other tokens; use one for all")
    sentences = {processor.sentences for processor in processors if processor.sentences is not None}
    if len(sentences) > 1:
        raise DataError(
            f"{kind}: expected processors for one batch, found sources of {' and '.join(map(str, sorted(sentences)))} "
            "sentences; give all of them the same batch"
        )
    if unread is None:
        unread = next((processor.states.unread for processor in processors if not processor.finds_unread), None)
    limits = [processor.longest for processor in processors if processor.longest is not None]
    longest = min(limits, default=None) if longest is None else longest
    return unread, longest, next(iter(sentences), None), next(iter(texts), None)


def constraints_of(kind: str, processors: Sequence[ProcessorParts]) -> tuple[list[TokenWeights], Tag | None]:
    """Return the weights of processors inside of free text, and their tag.

    Raises:
        DataError: other tags.
    """
    found = [processor.weights for processor in processors]
    tags = {weights.tag if isinstance(weights, FreeTextWeights) else None for weights in found}
    if len(tags) > 1:
        raise DataError(
            f"{kind}: expected the same `after` in each processor, found {' and '.join(sorted(map(repr, tags)))}; "
            "give it to all of them"
        )
    inner = [weights.inner if isinstance(weights, FreeTextWeights) else weights for weights in found]
    return inner, next(iter(tags))
