"""Spell the unknown words of generated texts.

A search chooses <unk> for all words outside the dictionary together, with their total probability. The model's state at
the place of <unk> gives the probability of each open class, and the class gives strings (open_vocabulary/spelling.py):

    with --sampling    class and string are sampled, so that the string has its probability under the model
    in other searches  the most probable of some sampled strings of the most probable class

If a network spells (open_vocabulary/speller.py), it uses the hidden state at the place. In an ensemble, this is the
state of the model that is sampled with the class, or that gives the most probable class its highest probability.

The scores remain those of <unk>. A copied string of the source is not <unk>, and keeps its own string.

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

from fairseq_llrnn.open_vocabulary.spelling import draw_columns
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.search.columns import Hypotheses


def random_of(generator: SequenceGenerator) -> np.random.Generator | None:
    """Return the generator for sampled strings, seeded by torch's and so by --seed, or None without sampling."""
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
    """Replace <unk> by strings in all hypotheses of a batch, with the models that have open classes.

    Args:
        prefix: forced beginnings of hypotheses, (B, t), padded. Their ids, perhaps of strings, stay.
        random: result of `random_of`.
    """
    opened = [m for m in models if isinstance(m.decoder, LogLinearDecoder) and m.decoder.head.open_words]
    if not opened:
        return
    dictionary = opened[0].decoder.dictionary
    unknown: list[tuple[Tensor, Tensor, np.ndarray]] = []  # hypotheses, their places, model and class there, (n, 2)
    hidden: list[list[Tensor]] = []  # each model's states at the places, (n, H)
    for row, sentence_hypotheses in enumerate(hypotheses):
        forced = None if prefix is None else prefix[row][prefix[row] != dictionary.pad()]
        states: list[Any] = []
        for hypothesis in sentence_hypotheses:
            tokens = hypothesis["tokens"]
            first = 0 if forced is None else min(len(forced), len(tokens))
            places = (tokens[first:] == dictionary.unk()).nonzero().squeeze(1) + first
            if forced is not None:
                tokens = torch.cat([forced[:first].to(tokens), tokens[first:]])
            hypothesis["tokens"] = tokens = tokens.clone()
            if len(places) == 0:
                continue
            states = states or [_encoded(model, sample, row) for model in opened]
            scored = [_places(model, state, tokens, places) for model, state in zip(opened, states, strict=True)]
            class_log_probs = torch.stack([log_probs.double().cpu() for log_probs, _ in scored], dim=1).numpy()
            unknown.append((tokens, places, _choose(class_log_probs, random)))
            hidden.append([speller_states for _, speller_states in scored])
    if not unknown:
        return
    models_and_classes = np.concatenate([choice for *_, choice in unknown])
    strings = np.zeros(len(models_and_classes), dtype=np.int64)
    for number, model in enumerate(opened):
        mask = models_and_classes[:, 0] == number
        if mask.any():
            model_states = torch.cat([by_model[number] for by_model in hidden])
            model_states = model_states[torch.from_numpy(mask).to(model_states.device)]
            classes = models_and_classes[mask, 1]
            strings[mask] = model.decoder.head.open_words.strings(model_states, classes, random)
    done = 0
    for tokens, places, choice in unknown:
        tokens[places] = torch.from_numpy(strings[done : done + len(choice)]).to(tokens)
        done += len(choice)


def _choose(log_probs: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
    """Choose a model and a class for each place, (n, M, O) -> (n, 2): sampled, or the most probable class and its best
    model.
    """
    if random is None:
        best = np.logaddexp.reduce(log_probs, axis=1).argmax(1)
        return np.stack([log_probs[np.arange(len(best)), :, best].argmax(1), best], axis=1)
    flat = log_probs.reshape(len(log_probs), -1)
    drawn = draw_columns(np.exp(flat - flat.max(1, keepdims=True)), random)
    return np.stack(np.divmod(drawn, log_probs.shape[2]), axis=1)


@torch.no_grad()
def _encoded(model: BaseFairseqModel, sample: dict[str, Any], row: int) -> Any:
    """Return the encoder's output for a sentence, or None for a model without an encoder."""
    if not hasattr(model, "encoder"):
        return None
    source = {name: sample["net_input"][name][row : row + 1] for name in ("src_tokens", "src_lengths")}
    return model.encoder.forward_torchscript(source)


@torch.no_grad()
def _places(model: BaseFairseqModel, encoder_out: Any, tokens: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Return log p(<unk>, open class | K) (n, O) at places (n,) of a hypothesis (T,), and its hidden states (n, H)."""
    decoder = model.decoder
    head, dictionary = decoder.head, decoder.dictionary
    words = tokens.masked_fill(tokens >= len(dictionary), dictionary.unk()).unsqueeze(0)
    previous = torch.cat([tokens.new_tensor([dictionary.eos()]), tokens[:-1]]).unsqueeze(0)
    batch = decoder(previous, encoder_out=encoder_out)[1]["batch"]
    scores = batch.open_scores[0, places]  # shape: (n, O)
    log_probs = head.target_log_probs(batch, words)[0, places].unsqueeze(1) + scores.log_softmax(-1)
    return log_probs, batch.hidden[0, places]
