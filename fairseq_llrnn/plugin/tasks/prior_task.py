"""The base of all tasks with a prior: load the prior, and search over candidates."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from omegaconf import II
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.head.checks import check_allowed
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.compat.interactive_lines import continue_after_input_error, whole_lines_of_data
from fairseq_llrnn.plugin.compat.loading import prior_folder, prior_of_state, read_checkpoint
from fairseq_llrnn.plugin.compat.moved_folders import data_folder
from fairseq_llrnn.plugin.compat.option_checks import no_such_split
from fairseq_llrnn.plugin.compat.safe_checkpoints import in_safe_loading, plain_options
from fairseq_llrnn.plugin.criterion import LogLinearCriterion
from fairseq_llrnn.plugin.data.unknown_words import WRITTEN, check_words, counted_unknown, report
from fairseq_llrnn.plugin.data.zero_mass import check_prefix, check_training_sentences
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS
from fairseq_llrnn.plugin.models.frozen_lm import load_general_model
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.search.columns import ColumnScorer, has_slots
from fairseq_llrnn.plugin.search.generator import choose_generator, count_groups_by_rows
from fairseq_llrnn.plugin.search.length import check_prefix_length
from fairseq_llrnn.plugin.tasks.task import PluginTask
from fairseq_llrnn.prior.directory import JSON_FILE
from fairseq_llrnn.prior.prior import Prior

logger = logging.getLogger(__name__)


@dataclass
class PriorConfig(FairseqDataclass):
    """Options that every task with a prior adds."""

    prior: Optional[str] = field(
        default=None,
        metadata={"help": "folder of `llrnn prior` (default: `prior` in the data folder)"},
    )
    model_path: Optional[str] = II("common_eval.path")
    update_freq: list[int] = II("optimization.update_freq")


def load_task_prior(cfg: Any, dictionary: Dictionary, dictionary_file: str) -> Prior:
    """Load the prior of a task, and check it against the task's dictionary.

    Args:
        cfg: the task's options. If they name no prior, and the data folder has none, the prior is that of the model.

    Raises:
        PriorError: the prior is missing, damaged, or made for another dictionary. OptionError: the model's prior is not
            found.
    """
    data: str = cfg.data
    folder, model = prior_folder(cfg.prior, data), _model_path(cfg)
    if cfg.prior is None and model is not None and not os.path.isfile(os.path.join(folder, JSON_FILE)):
        folder = prior_of_state(model, read_checkpoint(model), data)
    loaded = Prior.load(folder, load_general_model)
    path = os.path.join(data_folder(data), dictionary_file)
    loaded.check_dictionary(dictionary.symbols, path, dictionary_advice(cfg))
    logger.info("prior %s", loaded.signature)
    return loaded


def dictionary_advice(cfg: Any) -> str | None:
    """Return the advice for a dictionary that is not the prior's, if the model is trained already, or None in training.

    Args:
        cfg: the task's options.
    """
    if not in_safe_loading() and _model_path(cfg) is None:
        return None
    return (
        "a model needs the dictionary and the prior of its training: use the data folder and the prior that it was "
        "trained with"
    )


def _model_path(cfg: Any) -> str | None:
    """Return the first checkpoint of --path, if the command has one."""
    try:
        path = getattr(cfg, "model_path", None)
    except OmegaConfBaseException:  # options outside of a command
        return None
    first = utils.split_paths(path)[0] if path else None
    return first if first and os.path.isfile(first) else None


@contextmanager
def named_split(split: str, data: str, train_subset: str) -> Iterator[None]:
    """Load a data set inside the block, with whole lines, and turn its errors into errors that the user can fix.

    Raises:
        OptionError: there is no such data set. DataError: source and target have different numbers of sentences.
    """
    try:
        with whole_lines_of_data():
            yield
    except AssertionError as error:
        if "same number of examples" not in str(error):
            raise
        raise DataError(
            f"the {split} data: expected as many sources as targets, found other numbers; run fairseq-preprocess on "
            "texts with equal numbers of lines and without carriage returns, which would end a sentence"
        ) from None
    except FileNotFoundError as error:
        if "Dataset not found" not in str(error):
            raise
        raise OptionError(no_such_split(split, data_folder(data), train_subset)) from None


class PriorTask(PluginTask):
    """A task whose models and criterion take features, signatures and background from `task.prior`."""

    prior: Prior
    log_linear: bool | None = None  # whether the last built model is log-linear; None: there is none yet
    adds_to_loss = False  # whether its network has loss terms for our criterion
    warned_of_empty = False  # whether empty targets with --prefix-size were reported
    counts = ""  # the option of a normaliser that learns from the calls of our criterion

    @cached_property
    def reported(self) -> set[object]:
        """The files and dictionaries whose unknown words were reported."""
        return set()

    @contextmanager
    def reading(self, split: str) -> Iterator[None]:
        """Load a data set inside the block: report the unknown words of each file once, and raise as `named_split`."""
        with named_split(split, self.options.data, self.options.train_subset), counted_unknown() as shares:
            yield
        for share in shares:
            is_target = share.dictionary is self.target_dictionary
            if share.path in self.reported or (is_target and self.prior.has_labels):
                continue
            if id(share.dictionary) not in self.reported:
                check_words(share.dictionary, share.path)
            self.reported |= {share.path, id(share.dictionary)}
            report(share, is_target and self.prior.open_words is not None)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Build a model like fairseq. Raises OptionError if an extension needs a log-linear model, and it is not."""
        with plain_options():
            model = super().build_model(cfg, from_checkpoint)
        decoder = getattr(model, "decoder", None)
        self.log_linear = isinstance(decoder, LogLinearDecoder)
        for option in (extension.of_log_linear for extension in self.extensions):
            if option and not self.log_linear:
                raise OptionError(f"{option}: expected a log-linear model, found another one; use --arch llrnn_…")
        self.adds_to_loss = bool(getattr(getattr(decoder, "network", None), "terms", ()))
        normaliser = decoder.head.normaliser if isinstance(decoder, LogLinearDecoder) else None
        self.counts = normaliser.option if normaliser is not None and normaliser.counts else ""
        return model

    def build_criterion(self, cfg: Any, *from_checkpoint: bool) -> FairseqCriterion:
        """Build a criterion like fairseq. Raises OptionError if it does not fit the model that was built before.

        fairseq's label smoothing is an error: it spreads targets over words of probability 0.
        """
        name = str(getattr(cfg, "_name", None) or getattr(cfg, "criterion", ""))
        if name.startswith("label_smoothed"):
            raise OptionError(
                f"--criterion {name}: it smooths over all symbols, including forbidden ones, so that its loss would be "
                "infinite; use --criterion log_linear --label-smoothing 0.1"
            )
        if name == "log_linear" and self.log_linear is False:
            raise OptionError(
                "--criterion log_linear needs a log-linear model (--arch llrnn_…), found another one; use --criterion "
                "cross_entropy for it"
            )
        with plain_options():
            criterion = super().build_criterion(cfg, *from_checkpoint)  # some tasks of fairseq lack the last argument
        is_fairseqs = type(criterion).__module__.startswith("fairseq.")
        if self.log_linear and name != "cross_entropy" and is_fairseqs:
            raise OptionError(
                f"--criterion {name}: not for log-linear models; use --criterion log_linear, or cross_entropy"
            )
        opened = "" if self.prior.open_words is None else "an open vocabulary"
        strings = "strings of the source (evidence)" if self.prior.has_source_strings else opened
        if strings and is_fairseqs:
            raise OptionError(
                f"--criterion {name}: expected log_linear, because the prior has {strings}; use that, or a task of "
                "fairseq for a model of fairseq"
            )
        if self.adds_to_loss and name == "cross_entropy":
            raise OptionError(
                "--criterion cross_entropy: the network adds terms to the loss, by its cell or an option; use "
                "--criterion log_linear"
            )
        if self.counts and name == "cross_entropy":
            raise OptionError(
                f"--criterion cross_entropy: {self.counts} learns from the loss of --criterion log_linear; use that"
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
        """Build a generator like fairseq, but with beam search over candidates instead of the vocabulary if the result
        is the same.
        """
        continue_after_input_error()
        beam, words = getattr(args, "beam", 1), len(self.target_dictionary)
        if beam > words:
            raise OptionError(f"--beam {beam}: expected at most the {words:,} words of the dictionary; 5 is usual")
        top = getattr(args, "sampling_topk", -1)
        if top > words:
            raise OptionError(f"--sampling-topk {top}: expected at most the {words:,} words of the dictionary")
        if getattr(args, "constraints", None) and not any(hasattr(model, "encoder") for model in models):
            raise OptionError("--constraints needs a translation model, found a language model; use a grammar instead")
        aligns = any(hasattr(model, "encoder") and getattr(model.decoder, "attends", True) for model in models)
        if getattr(args, "print_alignment", None) and not aligns:
            raise OptionError("--print-alignment needs a model with attention on a source, found none; remove it")
        # these two extras of fairseq use the indices of words
        by_index = any((extra_gen_cls_kwargs or {}).get(name) for name in ("lm_model", "tokens_to_suppress"))
        make = seq_gen_cls or choose_generator(models, args, prefix_allowed_tokens_fn is None and not by_index)
        generator = super().build_generator(models, args, make, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        count_groups_by_rows(generator)
        if isinstance(generator, SequenceScorer) and any(map(has_slots, models)):
            return ColumnScorer(self.target_dictionary, compute_alignment=generator.compute_alignment)
        return generator

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> Any:
        """Run a step like fairseq, after calling the extensions."""
        head = getattr(getattr(model, "decoder", None), "head", None)
        if isinstance(head, LogLinearHead):
            if isinstance(criterion, LogLinearCriterion):
                criterion.set_normaliser(head)
            updates_per_epoch = max(1, -(-self.batches_per_epoch // max(1, self.options.update_freq[0])))
            for extension in EXTENSIONS:
                extension.before_batch(head, model, optimizer, update_num, updates_per_epoch, not ignore_grad)
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)

    def check_training_data(self, split: str) -> None:
        """Raise DataError for impossible sentences. Call it before any words are replaced."""
        loaded = self.datasets[split]
        targets = (loaded[i]["target"] for i in range(len(loaded)))
        check_training_sentences(self.prior, targets, self.target_dictionary, split)

    def forced(self, sample: dict[str, Any], prefix_tokens: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Return the forced prefix (B, t), padded, of a search, and the source (B, L) of a translation, or None."""
        raise NotImplementedError

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """Search or score like fairseq, but reject a prefix that the background forbids, which no search could
        continue.

        A prefix that begins with `</s>` forces nothing on its sentence, whose target is empty. With an open vocabulary,
        unknown words are spelled (plugin/search/spell_unknown.py).

        Raises:
            DataError: a forbidden prefix, with the word, its place, and the sentence's number if known, or one that is
                longer than a hypothesis may be.
            OptionError: the least length exceeds the greatest, or a constrained search has no constraints.
        """
        if constraints is None and getattr(getattr(generator, "search", None), "supports_constraints", False):
            raise OptionError(
                "--constraints: expected constraints with each sentence, found none in the data; use llrnn "
                "interactive, which reads them after tabs in each line, or remove the option"
            )
        if prefix_tokens is not None and prefix_tokens.size(1) > 0:
            empty = prefix_tokens[:, 0] == self.target_dictionary.eos()
            if bool(empty.any()) and not self.warned_of_empty:
                self.warned_of_empty = True
                logger.warning(
                    f"--prefix-size: {int(empty.sum())} targets of a batch are empty; their hypotheses have no prefix "
                    "(printed once)"
                )
            prefix_tokens = prefix_tokens.masked_fill(empty.unsqueeze(1), self.target_dictionary.pad())
        prefix, source = self.forced(sample, prefix_tokens)
        written = prefix
        if self.prior.open_words is not None and not any(map(has_slots, models)):
            # a search over the dictionary's words needs <unk> for other strings
            prefix = prefix_tokens = None if prefix is None else with_unk(prefix, self.target_dictionary)
            if sample.get("target") is not None:
                sample = sample | {"target": with_unk(sample["target"], self.target_dictionary)}
        if prefix is not None and prefix.size(1) > 0:
            ids = sample.get("id")  # fairseq passes no numbers for typed sentences
            if not isinstance(generator, SequenceScorer):
                words = prefix.ne(self.target_dictionary.pad()) & prefix.ne(self.target_dictionary.eos())
                check_prefix_length(int(words.sum(1).max()), sample["net_input"]["src_tokens"].size(1), generator)
            previous = functional.pad(prefix, (1, 0), value=self.target_dictionary.eos())[:, :-1]
            for decoder in (model.decoder for model in models if isinstance(model.decoder, LogLinearDecoder)):
                background = decoder.head.background.bind(source)
                share = background.view_of(previous).locate(prefix.flatten())[1].view_as(prefix)
                if isinstance(generator, SequenceScorer):  # it scores a language model's text, without a search
                    check_allowed(decoder.head, share, prefix, ids, decoder.fix_zero_mass)
                else:
                    check_prefix(share, prefix, ids, self.target_dictionary, self.prior)
        try:
            hypotheses: list[list[dict[str, Tensor]]] = super().inference_step(
                generator, models, sample, prefix_tokens, constraints
            )
        except AssertionError as error:
            if "min_len cannot be larger" not in str(error):
                raise
            raise OptionError(
                f"--min-len {generator.min_len} exceeds the greatest length of a hypothesis, which is --max-len-a "
                f"{generator.max_len_a:g} times the length of the source plus --max-len-b {generator.max_len_b}; raise "
                "--max-len-b, or lower --min-len"
            ) from None
        if self.prior.open_words is not None and not isinstance(generator, SequenceScorer):
            from fairseq_llrnn.plugin.search.spell_unknown import random_of, spell_unknown

            spell_unknown(models, sample, hypotheses, written, random_of(generator))
        if not isinstance(generator, SequenceScorer):
            best = [row[0]["tokens"] for row in hypotheses if row]
            tokens = torch.cat(best) if best else torch.empty(0)
            WRITTEN["unknown"] += int(tokens.eq(self.target_dictionary.unk()).sum())
            WRITTEN["words"] += int(tokens.ne(self.target_dictionary.eos()).sum())
        return hypotheses
