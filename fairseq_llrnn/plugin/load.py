"""Loads one of our models from a checkpoint, to look into it: safely, and with errors that say how to mend them."""

from __future__ import annotations

import os
import warnings
from typing import Any

import torch
from fairseq import checkpoint_utils, utils
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, BaseFairseqModel
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor

from fairseq_llrnn.core.explanation import Explanation, explain
from fairseq_llrnn.core.prior import JSON_FILE
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.language_model import LLRNNLanguageModel
from fairseq_llrnn.plugin.language_modeling_task import LLRNNLanguageModelingTask


class LoadedModel:
    """A language model in evaluation mode beside its task."""

    def __init__(self, model: LLRNNLanguageModel, task: LLRNNLanguageModelingTask) -> None:
        self.model = model.eval()
        self.task = task

    def encode(self, words: list[str]) -> Tensor:
        """Indices of the words and of the end of the sentence, (T,); words outside the dictionary become <unk>."""
        dictionary = self.task.dictionary
        return torch.tensor([*(dictionary.index(word) for word in words), dictionary.eos()])

    @torch.inference_mode()
    def explain(self, words: list[str], top: int) -> list[Explanation]:
        """One explanation per word and one for the sentence end, read by itself, as --sample-break-mode eos trains."""
        tokens = self.encode(words)
        previous = tokens.roll(1).unsqueeze(0)  # a sentence begins with </s>, shape: (1, T)
        decoder = self.model.decoder
        hidden, _ = decoder.extract_features(previous)
        return list(explain(self.task.prior, decoder.output, decoder.background, hidden[0], tokens, top))


def load_language_model(path: str, data: str | None = None, prior: str | None = None) -> LoadedModel:
    """Load a checkpoint of llrnn_lm; `data` and `prior` stand in for the places recorded in it.

    Raises:
        DataError: no such file; a checkpoint that is damaged, holds code, or is not of such a model.
        OptionError: the data or the prior is not where the checkpoint says. PriorError: the prior does not fit.
    """
    state = read_checkpoint(path)
    cfg = state["cfg"]
    _check_kind(path, cfg)
    if data is not None:
        cfg.task.data = data
    if prior is not None:
        cfg.task.prior = prior
    _check_places(path, cfg.task, data is not None, prior is not None)
    return LoadedModel(*build_model(path, state))


def build_model(path: str, state: dict[str, Any]) -> tuple[BaseFairseqModel, FairseqTask]:
    """The model and the task that a checkpoint's options describe, with its weights.

    Args:
        state: of read_checkpoint; the caller has looked at its options and knows that it wants what they name.

    Raises:
        DataError: weights that do not fit, or are not finite. PriorError: the prior does not fit.
    """
    state["args"] = None  # the host would prefer it to the configuration, which is what we looked at
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([path], state=state)
    except (OmegaConfBaseException, RuntimeError, KeyError, TypeError, ValueError, AttributeError) as error:
        # a checkpoint's weights and options are input like any other: whatever they lack shows up here
        raise DataError(
            f"{path}: expected weights that fit the model which its options describe, found {_first_line(error)}; use "
            "a whole checkpoint, saved by this version"
        ) from None
    for name, weights in models[0].named_parameters():
        if not bool(weights.isfinite().all()):
            raise DataError(
                f"{path}: expected finite weights, found NaN or infinity in {name}: its training went astray; use an "
                "earlier checkpoint, and train with a smaller --lr or with --clip-norm"
            )
    return models[0], task


def read_checkpoint(path: str) -> dict[str, Any]:
    """What a checkpoint holds. Raises DataError: no such file, damaged, with code in it, or of another kind."""
    if not os.path.isfile(path):
        raise DataError(f"{path}: expected a checkpoint, found no such file; give the .pt file that training wrote")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about kinds of pickles, just before they are refused
            state = checkpoint_utils.load_checkpoint_to_cpu(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check its rights") from None
    if state.get("cfg") is None or not isinstance(state.get("model"), dict):
        raise DataError(
            f"{path}: expected a checkpoint of fairseq, found none (it lacks options or weights); give the .pt file "
            "that training wrote"
        )
    return state


def _first_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) < 160 else text[:160] + '…'}" if text else type(error).__name__


def _check_kind(path: str, cfg: Any) -> None:
    """Refuse, by the names in the options, what is no model of ours, before any of it is built."""
    model, task = name_of(cfg, "model"), name_of(cfg, "task")
    model_class = MODEL_REGISTRY.get(model) or ARCH_MODEL_REGISTRY.get(model)
    task_class = TASK_REGISTRY.get(task)
    for found, ours in ((model_class, LLRNNLanguageModel), (task_class, LLRNNLanguageModelingTask)):
        if not (isinstance(found, type) and issubclass(found, ours)):
            raise DataError(
                f"{path}: expected a log-linear language model (--arch llrnn_lm, --task llrnn_language_modeling), "
                f"found {model!r} of task {task!r}; only a log-linear model has features to explain"
            )


def name_of(cfg: Any, part: str) -> str:
    options = cfg.get(part) if hasattr(cfg, "get") else None
    get = getattr(options, "get", lambda name: getattr(options, name, None))
    return str(get("_name") or get("arch") or get("task"))


def _check_places(path: str, task: Any, data_given: bool, prior_given: bool) -> None:
    recorded = f"{path} was trained with"
    first_data = utils.split_paths(str(task.data))[0]
    if not os.path.isfile(os.path.join(first_data, "dict.txt")):
        raise OptionError(
            f"--data {first_data}: expected the folder of fairseq-preprocess, found no dict.txt in it; give another one"
            if data_given
            else f"{recorded} the data folder {first_data!r}, but there is no dict.txt in it seen from here; give the "
            "folder with --data DATA-BIN"
        )
    prior = task.prior or os.path.join(first_data, "prior")
    if not os.path.isfile(os.path.join(prior, JSON_FILE)) and not prior_given:
        raise OptionError(
            f"{recorded} the prior {prior!r}, but there is none seen from here; give its folder with --prior DIR"
        )
