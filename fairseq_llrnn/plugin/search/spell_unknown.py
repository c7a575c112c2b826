"""Spells the unknown words of generated texts.

A search chooses <unk> for all words outside the dictionary together, with the probability of all of them. What was
written before says how probable each open class is at its place; the class says which string stands there
(open_vocabulary/spelling.py):

    under --sampling   both are drawn, so that the string has the probability that the model gives it
    in other searches  the most probable of some drawn strings of the most probable class

Where a network spells (systems/speller/network.py), it does so from the hidden state at the place: in an
ensemble, that of the model which is drawn with the class, or which gives most to the most probable class.

The scores stay those of <unk>. What a source sentence offers as evidence is no <unk>, and keeps its own string.

Sizes: T words of a hypothesis, n places of <unk> in it, O open classes, M models, H hidden width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fairseq.models import BaseFairseqModel
from fairseq.search import Sampling
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_llrnn.open_vocabulary.open_strings import OpenWords
from fairseq_llrnn.open_vocabulary.spelling import draw_columns
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.search.columns import Hypotheses


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
    opened = [m for m in models if isinstance(m.decoder, LogLinearDecoder) and m.decoder.head.find(OpenWords)]
    if not opened:
        return
    dictionary = opened[0].decoder.dictionary
    unknown: list[tuple[Tensor, Tensor, np.ndarray]] = []  # hypotheses, their places, model and class there, (n, 2)
    hidden: list[list[Tensor]] = []  # what spells each of them, by each model, (n, H or X)
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
            told = [_places(model, state, tokens, places) for model, state in zip(opened, states, strict=True)]
            shares = torch.stack([log_probs.double().cpu() for log_probs, _ in told], dim=1).numpy()
            unknown.append((tokens, places, _chosen(shares, random)))
            hidden.append([of_model for _, of_model in told])
    if not unknown:
        return
    models_and_classes = np.concatenate([chosen for *_, chosen in unknown])
    strings = np.zeros(len(models_and_classes), dtype=np.int64)
    for number, model in enumerate(opened):
        these = models_and_classes[:, 0] == number
        if these.any():
            of_model = torch.cat([some[number] for some in hidden])
            of_model = of_model[torch.from_numpy(these).to(of_model.device)]
            strings[these] = model.decoder.head.find(OpenWords).strings(of_model, models_and_classes[these, 1], random)
    done = 0
    for tokens, places, chosen in unknown:
        tokens[places] = torch.from_numpy(strings[done : done + len(chosen)]).to(tokens)
        done += len(chosen)


def _chosen(log_probs: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
    """A model and a class for each place, (n, M, O) -> (n, 2): drawn, or the most probable class and its best model."""
    if random is None:
        best = np.logaddexp.reduce(log_probs, axis=1).argmax(1)
        return np.stack([log_probs[np.arange(len(best)), :, best].argmax(1), best], axis=1)
    flat = log_probs.reshape(len(log_probs), -1)
    drawn = draw_columns(np.exp(flat - flat.max(1, keepdims=True)), random)
    return np.stack(np.divmod(drawn, log_probs.shape[2]), axis=1)


@torch.no_grad()
def _encoded(model: BaseFairseqModel, sample: dict[str, Any], row: int) -> Any:
    """What a model's encoder makes of a sentence; None where it has none."""
    if not hasattr(model, "encoder"):
        return None
    one = {name: sample["net_input"][name][row : row + 1] for name in ("src_tokens", "src_lengths")}
    return model.encoder.forward_torchscript(one)


@torch.no_grad()
def _places(model: BaseFairseqModel, encoder_out: Any, tokens: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """log p(<unk>, open class | K) at places (n,) of a hypothesis (T,), and what spells there: (n, O), (n, H or X)."""
    decoder = model.decoder
    head, dictionary = decoder.head, decoder.dictionary
    words = tokens.masked_fill(tokens >= len(dictionary), dictionary.unk()).unsqueeze(0)
    previous = torch.cat([tokens.new_tensor([dictionary.eos()]), tokens[:-1]]).unsqueeze(0)
    batch = decoder(previous, encoder_out=encoder_out)[1]["batch"]
    scores = batch.kept[OpenWords.name][0, places]  # shape: (n, O)
    log_probs = head.target_log_probs(batch, words)[0, places].unsqueeze(1) + scores.log_softmax(-1)
    return log_probs, batch.spelled_from[0, places]
