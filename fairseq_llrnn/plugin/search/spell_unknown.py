"""Spells the unknown words of generated texts.

A search chooses <unk> for all words outside the dictionary together, with the probability of all of them. What was
written before says how probable each open class is at its place; the class says which string stands there
(open_vocabulary/spelling.py):

    under --sampling   both are drawn, so that the string has the probability that the model gives it
    in other searches  the most probable string of the most probable class

The scores stay those of <unk>. What a source sentence offers as evidence is no <unk>, and keeps its own string.

Sizes: T words of a hypothesis, n places of <unk> in it, O open classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fairseq.models import BaseFairseqModel
from fairseq.search import Sampling
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder

Hypotheses = list[list[dict[str, Tensor]]]


def random_of(generator: SequenceGenerator) -> np.random.Generator | None:
    """What strings are drawn with, seeded by torch's generator, and so by fairseq's --seed; None: nothing is drawn."""
    search = getattr(generator.search, "search", generator.search)  # of search/generator.py, or fairseq's own
    if not isinstance(search, Sampling):
        return None
    return np.random.default_rng(int(torch.randint(2**62, ())))


def spell_unknown(
    models: list[BaseFairseqModel],
    sample: dict[str, Any],
    hypotheses: Hypotheses,
    prefix: Tensor | None,
    random: np.random.Generator | None,
) -> None:
    """Put strings in the place of <unk> in all hypotheses of a batch; by the models that have open classes.

    Args:
        prefix: what hypotheses had to begin with, (B, t), padded; it keeps its own ids, which may be of strings.
        random: of `random_of`.
    """
    opened = [m for m in models if isinstance(m.decoder, LogLinearDecoder) and m.decoder.head.opened is not None]
    if not opened:
        return
    dictionary, table = opened[0].decoder.dictionary, opened[0].decoder.head.strings.table
    unknown: list[tuple[Tensor, Tensor, np.ndarray]] = []  # hypotheses, their places, and the classes there
    for row, of_sentence in enumerate(hypotheses):
        forced = None if prefix is None else prefix[row][prefix[row] != dictionary.pad()]
        states: list[Any] = []
        for hypothesis in of_sentence:
            tokens = hypothesis["tokens"]
            first = 0 if forced is None else min(len(forced), len(tokens))
            places = (tokens[first:] == dictionary.unk()).nonzero().squeeze(1) + first
            if forced is not None:
                tokens = torch.cat([forced[:first].to(tokens), tokens[first:]])
            hypothesis["tokens"] = tokens = tokens.clone()
            if len(places) == 0:
                continue
            states = states or [_encoded(model, sample, row) for model in opened]
            shares = class_log_probs(opened, states, tokens, places).double().cpu()
            unknown.append((tokens, places, _chosen(shares.numpy(), random)))
    if not unknown:
        return
    classes = np.concatenate([chosen for *_, chosen in unknown])
    strings = np.zeros(len(classes), dtype=np.int64)
    for o in np.unique(classes).tolist():
        these = classes == o
        strings[these] = table.spelt(o) if random is None else table.drawn(o, int(these.sum()), random)
    done = 0
    for tokens, places, chosen in unknown:
        tokens[places] = torch.from_numpy(strings[done : done + len(chosen)]).to(tokens)
        done += len(chosen)


def _chosen(log_probs: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
    """A class of each place, (n, O) -> (n,): drawn, or the most probable one."""
    if random is None:
        best: np.ndarray = log_probs.argmax(1)
        return best
    steps = np.exp(log_probs - log_probs.max(1, keepdims=True)).cumsum(1)
    drawn: np.ndarray = (steps <= random.random((len(steps), 1)) * steps[:, -1:]).sum(1)
    return drawn


@torch.no_grad()
def _encoded(model: BaseFairseqModel, sample: dict[str, Any], row: int) -> Any:
    """What a model's encoder makes of a sentence; None where it has none."""
    if not hasattr(model, "encoder"):
        return None
    one = {name: sample["net_input"][name][row : row + 1] for name in ("src_tokens", "src_lengths")}
    return model.encoder.forward_torchscript(one)


@torch.no_grad()
def class_log_probs(models: list[BaseFairseqModel], states: list[Any], tokens: Tensor, places: Tensor) -> Tensor:
    """log p(<unk>, open class | K) of the mean of some models at the places (n,) of a hypothesis (T,): (n, O)."""
    answers = []
    for model, encoder_out in zip(models, states, strict=True):
        decoder = model.decoder
        head, dictionary = decoder.head, decoder.dictionary
        known = tokens.masked_fill(tokens >= len(dictionary), dictionary.unk()).unsqueeze(0)
        previous = torch.cat([tokens.new_tensor([dictionary.eos()]), tokens[:-1]]).unsqueeze(0)
        batch = decoder.extract_features(previous, encoder_out=encoder_out)[1]["batch"]
        scores = head.opened.scores(batch.hidden[0, places], batch.rows.open_classes)  # shape: (n, O)
        answers.append(head.target_log_probs(batch, known)[0, places].unsqueeze(1) + scores.log_softmax(-1))
    return torch.stack(answers).logsumexp(0)
