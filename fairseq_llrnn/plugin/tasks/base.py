"""What every task of ours does: it loads a prior, resumes exactly, and searches over candidates."""

import os
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

import numpy as np
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import FairseqTask
from omegaconf import II
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.experts.panel import Panel
from fairseq_llrnn.plugin.compat.loading import data_folder, prior_folder, prior_of_model
from fairseq_llrnn.plugin.compat.open_dictionary import known_words
from fairseq_llrnn.plugin.compat.option_checks import check_when_parsed, no_such_split
from fairseq_llrnn.plugin.compat.processes import refuse_separate_processes
from fairseq_llrnn.plugin.compat.safe_checkpoints import in_safe_loading
from fairseq_llrnn.plugin.compat.safe_eval import plain_options
from fairseq_llrnn.plugin.compat.user_errors import enter_command
from fairseq_llrnn.plugin.data.zero_mass import check_training_sentences, refuse_beginning
from fairseq_llrnn.plugin.models.frozen_lm import load_general_model
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.search.ensemble import has_slots
from fairseq_llrnn.plugin.search.generator import choose_generator
from fairseq_llrnn.plugin.search.scorer import ColumnScorer
from fairseq_llrnn.plugin.search.spell_unknown import random_of, spell_unknown
from fairseq_llrnn.prior.parts.open_vocabulary import open_table
from fairseq_llrnn.prior.prior import JSON_FILE, Prior

# Options of fairseq-generate for models that refine a whole sentence, and their defaults.
NOT_AUTOREGRESSIVE = {
    "iter_decode_eos_penalty": 0.0,
    "iter_decode_max_iter": 10,
    "iter_decode_force_max_iter": False,
    "iter_decode_with_beam": 1,
    "iter_decode_with_external_reranker": False,
}


@dataclass
class PriorConfig(FairseqDataclass):
    """The options that every task of ours adds."""

    prior: Optional[str] = field(
        default=None,
        metadata={"help": "directory that `llrnn prior` wrote (default: the folder `prior` inside the data directory)"},
    )
    expert: Optional[str] = field(
        default=None,
        metadata={
            "help": "path/to/file.py:ClassName, a class of yours that knows something of the next word (several with "
            "commas); no checkpoint remembers it: say it to every command"
        },
    )
    model_path: Optional[str] = II("common_eval.path")


def load_task_prior(cfg: Any, dictionary: Dictionary, dictionary_file: str) -> Prior:
    """The prior of a task, checked against its dictionary.

    Args:
        cfg: the task's options. Where they name no prior, and the data folder has none, it is that of the model.

    Raises:
        PriorError: none there, damaged, or made for another dictionary. OptionError: that of the model is nowhere.
    """
    data: str = cfg.data
    folder, model = prior_folder(cfg.prior, data), _model_path(cfg)
    if cfg.prior is None and model is not None and not os.path.isfile(os.path.join(folder, JSON_FILE)):
        folder = prior_of_model(model, data)
    loaded = Prior.load(folder, load_general_model)
    where = os.path.join(data_folder(data), dictionary_file)
    loaded.check_dictionary(dictionary.symbols, where, dictionary_advice(cfg))
    return loaded


def dictionary_advice(cfg: Any) -> str | None:
    """What helps where a dictionary is not the prior's and the model is trained already; None in training.

    Args:
        cfg: the task's options.
    """
    if not in_safe_loading() and _model_path(cfg) is None:
        return None
    return (
        "a model goes with the dictionary and the prior of its training: give the data folder and the prior that it "
        "was trained with"
    )


def _model_path(cfg: Any) -> str | None:
    """The first checkpoint of --path, where the command has one."""
    try:
        path = getattr(cfg, "model_path", None)
    except OmegaConfBaseException:  # options by themselves, outside of a command
        return None
    first = utils.split_paths(path)[0] if path else None
    return first if first and os.path.isfile(first) else None


def named_experts(cfg: Any, from_checkpoint: bool) -> str | None:
    """--expert. A checkpoint's options name none: what they do name after safe_loading, the user named."""
    return getattr(cfg, "expert", None) if in_safe_loading() or not from_checkpoint else None


@contextmanager
def named_split(split: str, data: str) -> Iterator[None]:
    """While a data set is loaded: one that is not there is the user's to fix. Raises OptionError."""
    try:
        yield
    except FileNotFoundError as error:
        if "Dataset not found" not in str(error):
            raise
        raise OptionError(no_such_split(split, data_folder(data))) from None


def criterion_name(cfg: Any) -> str:
    """Which criterion its options are of."""
    return str(getattr(cfg, "_name", None) or getattr(cfg, "criterion", ""))


class PriorTask(FairseqTask):
    """A task whose models and criterion find features, signatures and background in `task.prior`."""

    prior: Prior
    panel: Panel | None = None  # the experts of --expert
    log_linear: bool | None = None  # whether the last model that was built is; None before there is one
    aims_at_computation = False  # whether it has cells whose computation has a target, in the loss of our criterion

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """The task's options. fairseq asks for them when a command line names the task."""
        super().add_args(parser)
        enter_command()
        check_when_parsed(parser)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """As fairseq's. Raises OptionError where there are experts, for a model that can have none."""
        with plain_options():
            model = super().build_model(cfg, from_checkpoint)
        if self.panel is not None and not isinstance(getattr(model, "decoder", None), LogLinearDecoder):
            raise OptionError("--expert: expected a log-linear model, found another one; use --arch llrnn_…")
        self.log_linear = isinstance(getattr(model, "decoder", None), LogLinearDecoder)
        self.aims_at_computation = getattr(getattr(model, "decoder", None), "computation", None) is not None
        return model

    def can_reuse_epoch_itr(self, dataset: FairseqDataset) -> bool:
        """No: every epoch makes its own batches, from the seed and its number.

        Where fairseq uses its first batches again, a run resumed in a later epoch sees others than one never stopped.
        """
        return False

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """As fairseq's, which warns of samples that are left out.

        Args:
            max_positions: the largest size, a number, or one for the source and one for the target.

        Raises:
            DataError: a sample that is too long, unless `ignore_invalid_inputs`; none of a data set that is not.
        """
        fit, too_long = dataset.filter_indices_by_size(indices, max_positions)
        names = [name for name, loaded in self.datasets.items() if loaded is dataset]
        allowed = f"expected at most {_in_words(max_positions)} with </s>, as the model and --max-tokens allow"
        if len(too_long) > 0 and not ignore_invalid_inputs:
            first = min(too_long)
            place = f"sentence {first + 1} of the {names[0]} data" if names else "a sentence of the input"
            raise DataError(
                f"{place}: {allowed}, found {_in_words(dataset.size(first))} ({len(too_long):,} too long in all); "
                "shorten it, or leave out what is too long with --skip-invalid-size-inputs-valid-test"
            )
        if names and len(too_long) > 0 and len(fit) == 0:  # of typed input, none may be left: the next line may fit
            raise DataError(
                f"the {names[0]} data: {allowed}, found none of {len(too_long):,} sentences that short; raise the "
                "limit, or shorten them"
            )
        kept: np.ndarray = super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)
        return kept

    def is_training_data(self, split: str, combine: bool, train_subset: str) -> bool:
        """Whether `load_dataset` is asked for what training reads: only who trains combines the parts of this split.

        Raises:
            OptionError: this process is one of several, which would train each for itself.
        """
        training = combine and split == train_subset
        if training:
            refuse_separate_processes()
        return training

    def get_batch_iterator(self, *args: Any, **options: Any) -> Any:  # the signature belongs to fairseq
        """As fairseq's; raises OptionError for --max-tokens that a sentence alone exceeds."""
        try:
            return super().get_batch_iterator(*args, **options)
        except AssertionError as error:
            if "max_tokens" not in str(error):
                raise
            raise OptionError(
                f"--max-tokens: expected room for the longest sentence, found a longer one ({error}); raise it"
            ) from None

    def build_criterion(self, cfg: Any, *from_checkpoint: bool) -> FairseqCriterion:
        """As fairseq's; raises OptionError for a criterion that is not for the model that was built before.

        And for fairseq's label smoothing, which spreads over words that have no mass.
        """
        name = criterion_name(cfg)
        if name.startswith("label_smoothed"):
            raise OptionError(
                f"--criterion {name}: it spreads targets over all symbols, also those that the background forbids, and "
                "its loss would be infinite; use --criterion log_linear --label-smoothing 0.1"
            )
        if name == "log_linear" and self.log_linear is False:
            raise OptionError(
                "--criterion log_linear: expected a log-linear model (--arch llrnn_…), found another one; for it, use "
                "--criterion cross_entropy"
            )
        with plain_options():
            criterion = super().build_criterion(cfg, *from_checkpoint)  # which some of fairseq's tasks do not take
        if self.log_linear and name != "cross_entropy" and type(criterion).__module__.startswith("fairseq."):
            raise OptionError(
                f"--criterion {name}: made for other models than log-linear ones; use --criterion log_linear, or "
                "cross_entropy"
            )
        if self.aims_at_computation and name == "cross_entropy":
            raise OptionError(
                "--criterion cross_entropy: a cell that chooses how much it computes needs the loss with --vc-penalty; "
                "use --criterion log_linear"
            )
        return criterion

    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Any,
        seq_gen_cls: type[SequenceGenerator] | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Callable[[int, Tensor], list[int]] | None = None,
    ) -> SequenceGenerator:
        """As fairseq's, but beam search goes over candidates, not over the vocabulary, where that is the same."""
        beam, words = getattr(args, "beam", 1), len(self.target_dictionary)
        if beam > words:
            raise OptionError(f"--beam {beam}: expected at most the {words:,} words of the dictionary; 5 is usual")
        for name, default in NOT_AUTOREGRESSIVE.items():
            if getattr(args, name, default) != default:
                raise OptionError(
                    f"--{name.replace('_', '-')}: not supported by {type(self).__name__}, whose models write from the "
                    "first word to the last; leave it out"
                )
        # of fairseq's extras, these two speak of words by their index
        by_index = any((extra_gen_cls_kwargs or {}).get(name) for name in ("lm_model", "tokens_to_suppress"))
        make = seq_gen_cls or choose_generator(models, args, prefix_allowed_tokens_fn is None and not by_index)
        generator = super().build_generator(models, args, make, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        if isinstance(generator, SequenceScorer) and any(map(has_slots, models)):
            return ColumnScorer(self.target_dictionary, compute_alignment=generator.compute_alignment)
        return generator

    def check_training_data(self, split: str) -> None:
        """To be called before anything is put in the place of its words. Raises DataError: impossible sentences."""
        loaded = self.datasets[split]
        targets = (loaded[i]["target"] for i in range(len(loaded)))
        check_training_sentences(self.prior, targets, self.target_dictionary, split)

    def forced(self, sample: dict[str, Any], prefix_tokens: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """The prefix (B, t), padded, that a search must begin with, and the source (B, L) of a translation; or None."""
        raise NotImplementedError

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """As fairseq's, but a prefix that the background forbids is said to be one: no search could go on from it.

        With an open vocabulary, unknown words are spelled (plugin/search/spell_unknown.py).

        Raises:
            DataError: with the word, its place, and the sentence's number where it is known.
        """
        prefix, source = self.forced(sample, prefix_tokens)
        written = prefix
        if open_table(self.prior) is not None and not any(map(has_slots, models)):
            # strings outside the dictionary are <unk> to a search over its words
            prefix = prefix_tokens = None if prefix is None else known_words(prefix, self.target_dictionary)
            if sample.get("target") is not None:
                sample = sample | {"target": known_words(sample["target"], self.target_dictionary)}
        if prefix is not None:
            ids = sample.get("id")  # of typed sentences, fairseq keeps the numbers to itself
            previous = functional.pad(prefix, (1, 0), value=self.target_dictionary.eos())[:, :-1]
            for decoder in (model.decoder for model in models if isinstance(model.decoder, LogLinearDecoder)):
                background = decoder.head.background if source is None else decoder.head.background.given(source)
                share = background.log_share_per_position(previous, prefix)
                if isinstance(generator, SequenceScorer):  # a language model's text: nothing is begun
                    decoder.refuse_impossible(share, prefix, prefix[:0] if ids is None else ids)
                else:
                    refuse_beginning(share, prefix, ids, self.target_dictionary, self.prior)
        found: list[list[dict[str, Tensor]]] = super().inference_step(
            generator, models, sample, prefix_tokens, constraints
        )
        if open_table(self.prior) is not None and not isinstance(generator, SequenceScorer):
            spell_unknown(models, sample, found, written, random_of(generator))
        return found


def _in_words(size: Any) -> str:
    """A number of tokens, or that of the source and that of the target, if there is one."""
    if not isinstance(size, tuple):
        return f"{size:,} tokens"
    return f"{size[0]:,} tokens of source" + (f" and {size[1]:,} of target" if size[1] else "")
