"""The host's translation task with a prior over the target's words."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional  # the host reads Optional[X] from its dataclasses, and not X | None

from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.plugin.generation import generator_class
from fairseq_llrnn.plugin.tasks import load_task_prior


@dataclass
class LLRNNTranslationConfig(TranslationConfig):
    """Options of the host's task, and the prior."""

    prior: Optional[str] = field(
        default=None,
        metadata={"help": "directory that `llrnn prior` wrote (default: the folder `prior` inside the data directory)"},
    )


@register_task("llrnn_translation", dataclass=LLRNNTranslationConfig)
class LLRNNTranslationTask(TranslationTask):
    """Translation whose models and criterion find features, signatures and background in `task.prior`."""

    prior: Prior

    @classmethod
    def setup_task(cls, cfg: Namespace, **kwargs: Any) -> "LLRNNTranslationTask":
        task: LLRNNTranslationTask = super().setup_task(cfg, **kwargs)
        task.prior = load_task_prior(cfg.prior, cfg.data, task.target_dictionary, f"dict.{cfg.target_lang}.txt")
        return task

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
