"""A trained language model, ours or fairseq's, as the background of another model, for domain adaptation.

Sizes: B batch, T time, V words of the new model, G words of the general one (Dymetman & Xiao 2016, §4).

The checkpoint is read as data (compat/safe_checkpoints.py). The prior has a copy of it, of its dictionary and, for one
of our models, of its own prior (prior/model_files.py). These replace the places in its options. The model is in
evaluation mode, without gradients, and not a submodule of another model. So it is never trained, and in no checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.models import FairseqLanguageModel
from torch import Tensor

from fairseq_llrnn.errors import DataError, LLRNNError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.files.packed import packing_of
from fairseq_llrnn.plugin.compat.loading import Places, build_model, prior_folder, read_checkpoint, take_places
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.names import find_model, name_of
from fairseq_llrnn.prior.directory import read_description
from fairseq_llrnn.prior.model_files import CHECKPOINT, DICTIONARY, ModelFiles, SharedWords
from fairseq_llrnn.registry import load_all

STOCK_TASK, OUR_TASK = "language_modeling", "llrnn_language_modeling"
OPTION = "--background model:"  # in messages


class GeneralModel:
    """log b(K, x) for V words, from a model over G words (prior.model_files.SharedWords has the mapping)."""

    def __init__(self, model: FairseqLanguageModel, shared: SharedWords) -> None:
        self.model = model.eval().requires_grad_(False)
        self.shared = shared
        self.index = torch.from_numpy(shared.index)  # (V,) indices in the general model's dictionary
        self.log_share = torch.from_numpy(shared.log_share).float()  # (V,)
        self.longest = model.max_positions()

    def __call__(self, previous: Tensor, last: bool) -> Tensor:
        """Return log b of every word after each prefix of `previous` (B, T): (B, T, V). With `last`, after all of it:
        (B, 1, V).

        Raises:
            DataError: more tokens than the model can read.
        """
        if self.longest is not None and previous.size(1) > self.longest:
            raise DataError(
                f"the background's model reads at most {self.longest:.0f} tokens, found {previous.size(1)} in a "
                "sentence or block; use shorter ones (--tokens-per-sample, --max-len-b), or a background model that "
                "was trained with longer ones"
            )
        self._move_to(previous.device)
        # strings outside our dictionary, which have ids in evidence, are unknown to the general model
        in_dictionary = previous < len(self.index)
        read = self.index[previous.where(in_dictionary, 0)].where(in_dictionary, self.shared.unknown)  # shape: (B, T)
        decoder = self.model.decoder
        if last and isinstance(decoder, LogLinearDecoder):  # in a search it computes only the last position
            output = decoder(read, incremental_state={})
        else:
            output = decoder(read)
            output = (output[0][:, -1:] if last else output[0], *output[1:])
        log_probs = self.model.get_normalized_probs(output, log_probs=True).float()  # shape: (B, T or 1, G)
        return log_probs.index_select(2, self.index) + self.log_share

    def _move_to(self, device: torch.device) -> None:
        if self.index.device != device:
            self.model.to(device)
            self.index, self.log_share = self.index.to(device), self.log_share.to(device)


def find_model_files(checkpoint: str, places: Places, weight: float = 1.0, temperature: float = 1.0) -> ModelFiles:
    """Find the files of a trained model: the checkpoint, and the recorded dictionary and prior.

    Args:
        places: overrides of the recorded places.
        weight, temperature: as in the background `model`.

    Raises:
        DataError: no language model, or a damaged checkpoint. OptionError: its dictionary or prior is missing.
    """
    state = read_checkpoint(checkpoint)
    _check_kind(checkpoint, state["cfg"])
    for code in load_all("user_code"):
        if code.trained(state["model"]):
            raise DataError(
                f"{OPTION}{checkpoint}: a model that was trained with --{code.OPTION} cannot be a background; use "
                "another one"
            )
    task = state["cfg"].task
    [dictionary] = take_places(checkpoint, task, places, state)
    prior = Path(prior_folder(task.prior, str(task.data))) if name_of(state["cfg"], "task") == OUR_TASK else None
    if prior is not None:
        try:
            read_description(prior)
        except PriorError as error:
            raise OptionError(f"{places.options.format('prior')} {error}") from None
    return ModelFiles.of(Path(checkpoint), dictionary, prior, weight, temperature)


def load_general_model(files: ModelFiles, symbols: Sequence[str], allowed: np.ndarray) -> GeneralModel:
    """Run build_general_model for a loaded prior. Every error is a PriorError."""
    try:
        return build_general_model(files, symbols, allowed)
    except LLRNNError as error:
        raise PriorError(f"the model that is the prior's background: {error}") from None


def build_general_model(files: ModelFiles, symbols: Sequence[str], allowed: np.ndarray) -> GeneralModel:
    """Build the model for the words of another dictionary.

    Args:
        symbols: the V symbols.
        allowed: (V,) bool, whether a symbol can be a next word.

    Raises:
        DataError: not a language model, or one without any of the words. PriorError: its prior does not fit.
    """
    checkpoint = str(files.paths[CHECKPOINT])
    state = read_checkpoint(checkpoint)
    _check_kind(checkpoint, state["cfg"])
    task = state["cfg"].task
    dictionary = files.paths[DICTIONARY]
    words = load_dictionary(dictionary)  # its errors name the line; fairseq's do not
    if packing_of(dictionary.read_bytes()) is not None:  # fairseq cannot read it
        raise DataError(f"{dictionary}: expected text, found a compressed file; unpack it")
    task.data = str(dictionary.parent)
    if name_of(state["cfg"], "task") == OUR_TASK:
        task.prior = str(files.prior)  # if it is missing, the model's task raises the error
    model, _ = build_model(checkpoint, state)
    shared = SharedWords.of(symbols, allowed, words.symbols, ~words.specials)
    if shared.in_both == 0:
        raise DataError(
            f"{OPTION} expected a model over words of the dictionary, found none among its "
            f"{int((~words.specials).sum()):,} words (the first is {words.symbols[4]!r}); use a model of the same "
            "language and tokenisation"
        )
    return GeneralModel(model, shared)


def _check_kind(path: str, cfg: Any) -> None:
    """Raise DataError unless the options are those of a language model that predicts the next word."""
    model, task = name_of(cfg, "model"), name_of(cfg, "task")
    model_class = find_model(model)
    is_language_model = model_class is not None and issubclass(model_class, FairseqLanguageModel)
    if not is_language_model or task not in (STOCK_TASK, OUR_TASK):
        raise DataError(
            f"{OPTION}{path}: expected a language model of the task {STOCK_TASK} or {OUR_TASK}, found {model!r} of "
            f"task {task!r}; name another checkpoint"
        )
    for name in ("add_bos_token", "self_target", "past_target", "output_dictionary_size"):
        if getattr(cfg.task, name, None) not in (None, False, -1):
            raise DataError(
                f"{OPTION}{path}: a model that was trained with --{name.replace('_', '-')} cannot be a background; "
                "train it without this option"
            )
