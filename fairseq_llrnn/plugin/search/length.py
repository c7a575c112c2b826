"""Lengths in searches: sources without words, and whether a complete string fits the length limit.

The translation of an empty line is an empty line, without a search. fairseq's models would translate `</s>` alone into
some likely sentence. A search has one length limit. If each sentence has its own, sentences with equal limits are
searched together.

Sizes: B sentences of a batch, L source length, t prefix length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.backgrounds.states import States, select
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.search.columns import Hypotheses

Search = Callable[[dict[str, Any], Tensor | None, Tensor | None], Hypotheses]


def search_nonempty(
    search: Search, sample: dict[str, Any], prefix: Tensor | None, constraints: Tensor | None, eos: int, pad: int
) -> Hypotheses:
    """Run `search` for a batch. A source without words has one empty hypothesis of probability 1.

    A sentence with a prefix or with constraints is always searched.

    Args:
        search: called with a batch, its prefixes and its constraints, without the empty sources.
        prefix: (B, t), padded.
        constraints: (B, …), packed by fairseq: their number comes first.
    """
    source = sample["net_input"]["src_tokens"]
    empty = ((source == eos) | (source == pad)).all(dim=1)  # shape: (B,)
    if prefix is not None:
        empty &= ((prefix == pad) | (prefix == eos)).all(dim=1)  # an empty target is no prefix
    if constraints is not None:
        empty &= constraints[:, 0].to(empty.device) == 0
    if not bool(empty.any()):
        return search(sample, prefix, constraints)
    others = (~empty).nonzero().flatten()
    searched = iter(
        search(_rows(sample, others, len(source)), *(_row(tensor, others) for tensor in (prefix, constraints)))
        if len(others)
        else ()
    )
    return [[_nothing(source, eos)] if is_empty else next(searched) for is_empty in empty.tolist()]


def check_prefix_length(size: int, source_size: int, generator: Any) -> None:
    """Raise DataError if a prefix is longer than a hypothesis may be. fairseq would cut it without a message.

    Args:
        size: words of the longest prefix. source_size: L. generator: fairseq's.
    """
    longest = int(generator.max_len_a * source_size + generator.max_len_b)
    if size > longest >= generator.min_len and not generator.match_source_len:
        raise DataError(
            f"a sentence of the input: expected a prefix of at most {longest:,} words, the limit of a hypothesis, "
            f"found {size:,}; raise --max-len-b"
        )


def search_by_length(
    search: Search, sample: dict[str, Any], prefix: Tensor | None, constraints: Tensor | None
) -> Hypotheses:
    """Run `search` for the sentences of a batch, those with sources of equal length together.

    Args:
        search, prefix, constraints: as in `search_nonempty`.
    """
    lengths = sample["net_input"]["src_lengths"]
    hypotheses: Hypotheses = [[] for _ in range(len(lengths))]
    for length in lengths.unique():
        rows = (lengths == length).nonzero().flatten()
        equal = _rows(sample, rows, len(lengths))
        results = search(equal, *(_row(tensor, rows) for tensor in (prefix, constraints)))
        for row, result in zip(rows.tolist(), results, strict=True):
            hypotheses[row] = result
    return hypotheses


def _nothing(source: Tensor, eos: int) -> dict[str, Tensor]:
    """Return the hypothesis without words, in the form of fairseq's generators."""
    return {
        "tokens": source.new_tensor([eos]),
        "score": torch.tensor(0.0, device=source.device),
        "attention": torch.empty(0),
        "alignment": torch.empty(0),
        "positional_scores": torch.zeros(1, device=source.device),
    }


def _rows(batch: dict[str, Any], rows: Tensor, size: int) -> dict[str, Any]:
    """Select sentences in everything that a batch holds, nested batches included."""
    selected: dict[str, Any] = {}
    for name, value in batch.items():
        if isinstance(value, dict):
            value = _rows(value, rows, size)
        elif isinstance(value, Tensor) and value.dim() > 0 and len(value) == size:
            value = _row(value, rows)
        selected[name] = value
    return selected | ({"nsentences": len(rows)} if "nsentences" in batch else {})


def _row(tensor: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if tensor is None else tensor.index_select(0, rows.to(tensor.device))


NO_LENGTH = 1 << 30  # longer than any length limit


def check_reachable(
    background: BoundBackground, sample: dict[str, Any], prefix: Tensor | None, longest: int, pad: int, eos: int
) -> None:
    """Raise DataError unless every sentence can end within the limit, after its forced prefix.

    Args:
        background: bound to the sample's sources.
        prefix: (B, t), padded.
        longest: length limit in tokens, `</s>` included.
    """
    source = sample["net_input"]["src_tokens"]
    prefix = source[:, :0] if prefix is None else prefix[:, : longest - 1]
    forced = ((prefix != pad) & (prefix != eos)).long().cumprod(1).sum(1)  # words of each prefix
    first = torch.arange(len(source), device=source.device) * (prefix.size(1) + 1)
    of_positions = background.flat_states(functional.pad(prefix, (1, 0)))  # the first input is not read
    state = select(of_positions, first + forced)
    needed = background.steps_to_end(state) + forced
    bad = (needed > longest) & ~(prefix == eos).any(1)
    if not bool(bad.any()):
        return
    row = int(bad.long().argmax())
    begun = f", with the {int(forced[row]):,} of its prefix," if forced[row] else ""
    shortest = int(needed[row]) - 1
    advice = (
        "the background allows none of any length; fix its grammar or automaton, or the prefix"
        if shortest >= NO_LENGTH
        else f"the shortest one has {shortest:,}{_of_terms(background, state, row)}; raise --max-len-b"
    )
    raise DataError(
        f"{_place(sample, row)}: expected a complete string of at most {longest - 1:,} words{begun} that the "
        f"background allows, found none: {advice}"
    )


def _of_terms(background: BoundBackground, state: States, row: int) -> str:
    """Describe how many words the terms of a sentence require."""
    from fairseq_llrnn.evidence.counted_slots import CountedSlots

    if not isinstance(background, CountedSlots):
        return ""
    required = int(background.missing(state)[row])
    return f" ({required:,} of them forms of its terms)" if required else ""


def check_hypotheses(results: Hypotheses, sample: dict[str, Any], longest: int) -> None:
    """Raise DataError for a sentence without hypotheses. `longest`: as in `check_reachable`."""
    for row, hypotheses in enumerate(results):
        if not hypotheses:
            raise DataError(
                f"{_place(sample, row)}: expected a string that the background allows, found none of up to "
                f"{longest - 1:,} words that the other options of the search allow, too; remove --min-len, "
                "--no-repeat-ngram-size, --match-source-len or constraints, or raise --max-len-b"
            )


def _place(sample: dict[str, Any], row: int) -> str:
    ids = sample.get("id")
    return f"sentence {int(ids[row]) + 1 if isinstance(ids, Tensor) and len(ids) > row else row + 1} of the search"
