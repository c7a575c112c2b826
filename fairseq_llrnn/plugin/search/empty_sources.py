"""The translation of an empty line is an empty line: a source without words is not searched for one.

Sizes: B sentences of a batch. fairseq's models would translate `</s>` alone, into whatever they find likely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Found = list[list[dict[str, Tensor]]]  # of every sentence, its hypotheses
Search = Callable[[dict[str, Any], Tensor | None, Tensor | None], Found]


def search_where_there_are_words(
    search: Search, sample: dict[str, Any], prefix: Tensor | None, constraints: Tensor | None, eos: int, pad: int
) -> Found:
    """What `search` finds for a batch; one empty hypothesis, with certainty, for each source without words.

    A sentence that must begin with a prefix, or hold given words, is searched for in any case.

    Args:
        search: called with a batch, its prefixes and its constraints, for the other sentences of it.
        prefix: (B, t), padded. constraints: (B, …), as fairseq packs them: how many there are comes first.
    """
    source = sample["net_input"]["src_tokens"]
    empty = ((source == eos) | (source == pad)).all(dim=1)  # shape: (B,)
    if prefix is not None:
        empty &= (prefix == pad).all(dim=1)
    if constraints is not None:
        empty &= constraints[:, 0].to(empty.device) == 0
    if not bool(empty.any()):
        return search(sample, prefix, constraints)
    others = (~empty).nonzero().flatten()
    found = iter(
        search(_rows(sample, others, len(source)), *(_row(given, others) for given in (prefix, constraints)))
        if len(others)
        else ()
    )
    return [[_nothing(source, eos)] if is_empty else next(found) for is_empty in empty.tolist()]


def _nothing(source: Tensor, eos: int) -> dict[str, Tensor]:
    """The hypothesis without words, as fairseq's generators give theirs."""
    return {
        "tokens": source.new_tensor([eos]),
        "score": torch.tensor(0.0, device=source.device),
        "attention": torch.empty(0),
        "alignment": torch.empty(0),
        "positional_scores": torch.zeros(1, device=source.device),
    }


def _rows(batch: dict[str, Any], rows: Tensor, size: int) -> dict[str, Any]:
    """The same sentences of all that a batch holds, also in the batches within."""
    chosen: dict[str, Any] = {}
    for name, value in batch.items():
        if isinstance(value, dict):
            value = _rows(value, rows, size)
        elif isinstance(value, Tensor) and value.dim() > 0 and len(value) == size:
            value = _row(value, rows)
        chosen[name] = value
    return chosen | ({"nsentences": len(rows)} if "nsentences" in batch else {})


def _row(given: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if given is None else given.index_select(0, rows.to(given.device))
