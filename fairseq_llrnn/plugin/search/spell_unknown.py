"""Spells the unknown words of generated texts.

A search chooses <unk> for all words outside the dictionary together, with the probability of all of them. Afterwards
the most probable open class at its place, given what was written before, says which string stands there: the best of
many that were drawn from it (open_vocabulary/spelling.py). The scores stay those of <unk>. What a
source sentence offers as evidence is no <unk>, and keeps its own string.

Sizes: T words of a hypothesis, O open classes.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder

Hypotheses = list[list[dict[str, Tensor]]]


def spell_unknown(
    models: list[BaseFairseqModel], sample: dict[str, Any], hypotheses: Hypotheses, prefix: Tensor | None
) -> None:
    """Put strings in the place of <unk> in all hypotheses of a batch; by the first model that has open classes.

    Args:
        prefix: what hypotheses had to begin with, (B, t), padded; it keeps its own ids, which may be of strings.
    """
    model = next(
        (m for m in models if isinstance(m.decoder, LogLinearDecoder) and m.decoder.head.opened is not None), None
    )
    if model is None:
        return
    dictionary = model.decoder.dictionary
    for row, of_sentence in enumerate(hypotheses):
        forced = None if prefix is None else prefix[row][prefix[row] != dictionary.pad()]
        for hypothesis in of_sentence:
            tokens = hypothesis["tokens"]
            first = 0 if forced is None else min(len(forced), len(tokens))
            places = (tokens[first:] == dictionary.unk()).nonzero().squeeze(1) + first
            if forced is not None:
                tokens = torch.cat([forced[:first].to(tokens), tokens[first:]])
            hypothesis["tokens"] = tokens if len(places) == 0 else _spelt(model, sample, row, tokens, places)


@torch.no_grad()
def _spelt(model: BaseFairseqModel, sample: dict[str, Any], row: int, tokens: Tensor, places: Tensor) -> Tensor:
    """The tokens (T,) of a hypothesis of sentence `row` with ids of strings at some places, which hold <unk>."""
    decoder = model.decoder
    previous = torch.cat([tokens.new_tensor([decoder.dictionary.eos()]), tokens[:-1]]).unsqueeze(0)
    encoder_out = None
    if hasattr(model, "encoder"):
        net_input = sample["net_input"]
        one = {name: net_input[name][row : row + 1] for name in ("src_tokens", "src_lengths")}
        encoder_out = model.encoder.forward_torchscript(one)
    batch = decoder.extract_features(previous, encoder_out=encoder_out)[1]["batch"]
    scores = decoder.head.opened.scores(batch.hidden[0, places], batch.rows.open_classes)  # shape: (places, O)
    spelt = [decoder.head.strings.table.spelt(o) for o in scores.argmax(-1).tolist()]
    return tokens.index_copy(0, places, tokens.new_tensor(spelt))
