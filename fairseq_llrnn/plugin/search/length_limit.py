"""Whether a search can end with complete strings at all, within its limit of length.

Sizes: B sentences, L source length, t prefix length.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.counted_slots import CountedSlots

NO_LENGTH = 1 << 30  # more than any limit of length


def refuse_unreachable(
    background: Background, sample: dict[str, Any], prefix: Tensor | None, longest: int, pad: int, eos: int
) -> None:
    """Raise DataError unless an end is in reach of every sentence, after what it is forced to begin with.

    Args:
        background: of the sample's sources. prefix: (B, t), padded. longest: tokens of a hypothesis, `</s>` included.
    """
    source = sample["net_input"]["src_tokens"]
    prefix = source[:, :0] if prefix is None else prefix[:, : longest - 1]
    given = ((prefix != pad) & (prefix != eos)).long().cumprod(1).sum(1)  # words that each must begin with
    first = torch.arange(len(source), device=source.device) * (prefix.size(1) + 1)
    state = background.flat_states(functional.pad(prefix, (1, 0)))[first + given]  # the first input is not read
    needed = background.steps_to_end(state) + given
    bad = (needed > longest) & ~(prefix == eos).any(1)
    if not bool(bad.any()):
        return
    row = int(bad.long().argmax())
    begun = f", the {int(given[row]):,} given included," if given[row] else ""
    shortest = int(needed[row]) - 1
    advice = (
        "the background allows none of any length there; fix its grammar or automaton, or the beginning"
        if shortest >= NO_LENGTH
        else f"the shortest one has {shortest:,}{_of_terms(background, state, row)}; raise --max-len-b"
    )
    raise DataError(
        f"{_place(sample, row)}: expected a complete string of at most {longest - 1:,} words{begun} that the "
        f"background allows, found none: {advice}"
    )


def _of_terms(background: Background, state: Tensor, row: int) -> str:
    """How many words terms require of a sentence."""
    if not isinstance(background, CountedSlots):
        return ""
    required = int(background.missing(state)[row])
    return f" ({required:,} of them forms of its terms)" if required else ""


def refuse_nothing_found(found: list[list[dict[str, Tensor]]], sample: dict[str, Any], longest: int) -> None:
    """Raise DataError for a sentence without hypotheses, where an end was in reach; longest: as above."""
    for row, hypotheses in enumerate(found):
        if not hypotheses:
            raise DataError(
                f"{_place(sample, row)}: expected a string that the background allows, found none of up to "
                f"{longest - 1:,} words that the other options of the search allow, too; leave out --min-len, "
                "--no-repeat-ngram-size, --match-source-len or constraints, or raise --max-len-b"
            )


def _place(sample: dict[str, Any], row: int) -> str:
    ids = sample.get("id")
    return f"sentence {int(ids[row]) + 1 if isinstance(ids, Tensor) and len(ids) > row else row + 1} of the search"
