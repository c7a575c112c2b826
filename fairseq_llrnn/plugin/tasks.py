"""The host's language-modelling task with a prior."""

import os
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional  # the host reads Optional[X] from its dataclasses, and not X | None

import torch
from fairseq import utils
from fairseq.data import Dictionary, FairseqDataset
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.core.prior import Prior, load_prior
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.decoder import LogLinearDecoder
from fairseq_llrnn.plugin.generation import generator_class


@dataclass
class LLRNNLanguageModelingConfig(LanguageModelingConfig):
    """Options of the host's task, and the prior."""

    prior: Optional[str] = field(
        default=None,
        metadata={"help": "directory that `llrnn prior` wrote (default: the folder `prior` inside the data directory)"},
    )


def load_task_prior(prior: str | None, data: str, dictionary: Dictionary, dictionary_file: str) -> Prior:
    """The prior of a task, checked against its dictionary.

    Raises:
        PriorError: none there, damaged, or made for another dictionary.
    """
    first_data = utils.split_paths(data)[0]
    loaded = load_prior(prior or os.path.join(first_data, "prior"))
    loaded.check_dictionary(dictionary.symbols, os.path.join(first_data, dictionary_file))
    return loaded


@register_task("llrnn_language_modeling", dataclass=LLRNNLanguageModelingConfig)
class LLRNNLanguageModelingTask(LanguageModelingTask):
    """Language modelling whose models and criterion find features, signatures and background in `task.prior`."""

    prior: Prior

    @classmethod
    def setup_task(cls, args: Namespace, from_checkpoint: bool = False) -> "LLRNNLanguageModelingTask":
        """`from_checkpoint`: whether `args` come from a checkpoint, as for fairseq-validate; all the same here."""
        _refuse_unsupported(args)
        task: LLRNNLanguageModelingTask = super().setup_task(args)
        task.prior = load_task_prior(args.prior, args.data, task.dictionary, "dict.txt")
        return task

    def can_reuse_epoch_itr(self, dataset: FairseqDataset) -> bool:
        """No: every epoch makes its own batches, from the seed and its number.

        Where the host uses its first batches again, a run resumed in a later epoch sees others than one never stopped.
        """
        return False

    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Any,
        seq_gen_cls: type[SequenceGenerator] | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Callable[[int, Tensor], list[int]] | None = None,
    ) -> SequenceGenerator:
        """As the host's, but beam search goes over candidates, not over the vocabulary, where that is the same."""
        if seq_gen_cls is None and prefix_allowed_tokens_fn is None:
            seq_gen_cls = generator_class(models, args)
        return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """As the host's, but a prefix that the background forbids is said to be one: no search could go on from it."""
        prefix = prefix_tokens
        eos = self.dictionary.eos()
        if prefix is None:  # the host then takes the source, without the </s> that begins it
            prefix = sample["net_input"]["src_tokens"]
            prefix = prefix[:, 1:] if bool(prefix[:, :1].eq(eos).all()) else prefix
        previous = functional.pad(prefix, (1, 0), value=eos)[:, :-1]
        for decoder in (model.decoder for model in models if isinstance(model.decoder, LogLinearDecoder)):
            share = decoder.background.log_share_along(previous, prefix)
            decoder.refuse_impossible(share, prefix, torch.arange(len(prefix)))
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)


def _refuse_unsupported(args: Namespace) -> None:
    """Options of the host's task that would silently mean something else here."""
    refusals = {
        "add_bos_token": "sentences begin with </s>, as in fairseq's default; <s> is never predicted",
        "self_target": "the model predicts the next word only",
        "past_target": "the model predicts the next word only",
    }
    for name, reason in refusals.items():
        if getattr(args, name, False):
            option = "--" + name.replace("_", "-")
            raise OptionError(f"{option}: not supported by llrnn_language_modeling ({reason}); leave it out")
    if args.output_dictionary_size >= 0:
        raise OptionError(
            f"--output-dictionary-size {args.output_dictionary_size}: not supported by llrnn_language_modeling (every "
            "word of the dictionary has a signature); leave it out"
        )
