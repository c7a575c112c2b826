"""The host's translation task with a prior over the target's words."""

import logging
import os
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any

from fairseq import utils
from fairseq.data import IndexedRawTextDataset, LanguagePairDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II
from torch import Tensor

from fairseq_llrnn.core.evidence.table import MAX_SLOTS
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.evidence_data import UnknownTwins
from fairseq_llrnn.plugin.open_dictionary import open_source, open_target
from fairseq_llrnn.plugin.task import PriorConfig, PriorTask, load_task_prior

logger = logging.getLogger(__name__)


@dataclass
class LLRNNTranslationConfig(PriorConfig, TranslationConfig):
    """Options of the host's task, the prior, and what concerns its evidence."""

    max_slots: int = field(
        default=MAX_SLOTS, metadata={"help": "evidence that a source sentence may offer: the most strings"}
    )
    evidence_dropout: float = field(
        default=0.2,
        metadata={
            "help": "share of the copied source words that training reads as <unk>, to learn what to do with unknown ones"
        },
    )
    seed: int = II("common.seed")


@register_task("llrnn_translation", dataclass=LLRNNTranslationConfig)
class LLRNNTranslationTask(PriorTask, TranslationTask):
    """Translation into words that have features and a background."""

    @classmethod
    def setup_task(cls, cfg: Namespace, **kwargs: Any) -> "LLRNNTranslationTask":
        """Raises OptionError for --left-pad-target and wrong numbers, PriorError for a prior that does not fit."""
        if cfg.left_pad_target:
            raise OptionError(
                "--left-pad-target: not supported by llrnn_translation (a recurrent decoder would read the padding); "
                "leave it out"
            )
        if cfg.max_slots < 1:
            raise OptionError(f"--max-slots {cfg.max_slots}: expected a number of at least 1, e.g. {MAX_SLOTS}")
        if not 0.0 <= cfg.evidence_dropout < 1.0:
            raise OptionError(f"--evidence-dropout {cfg.evidence_dropout}: expected a share from 0 to below 1, e.g. 0.2")
        task: LLRNNTranslationTask = super().setup_task(cfg, **kwargs)
        task.prior = load_task_prior(cfg.prior, cfg.data, task.target_dictionary, f"dict.{cfg.target_lang}.txt")
        source_file = os.path.join(utils.split_paths(cfg.data)[0], f"dict.{cfg.source_lang}.txt")
        task.prior.check_source_dictionary(task.source_dictionary.symbols, source_file)
        if task.prior.evidence is not None:
            table = task.prior.evidence_table
            table.max_slots = cfg.max_slots
            task.src_dict = open_source(task.source_dictionary, table)
            task.tgt_dict = open_target(task.target_dictionary, table)
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """As the host's; where the prior has evidence, training sees unknown words, too (plugin/evidence_data.py)."""
        super().load_dataset(split, epoch, combine, **kwargs)
        if self.prior.evidence is None:
            return
        pairs = self.datasets[split]
        if combine and self.cfg.evidence_dropout > 0:  # the host combines what it trains on, and nothing else
            self.datasets[split] = UnknownTwins(pairs, self.prior.evidence_table, self.cfg.evidence_dropout, self.cfg.seed)
        else:
            self._warn_of_lost_words(split, pairs)

    def _warn_of_lost_words(self, split: str, pairs: LanguagePairDataset) -> None:
        """A binary data set holds <unk> where the text had an unknown word: no slot can bring it back."""
        lost = sum(int((pairs.src[i] == self.source_dictionary.unk()).sum()) for i in range(len(pairs)))
        if lost and not isinstance(pairs.src, IndexedRawTextDataset):
            logger.warning(
                f"evidence: {lost} unknown words of the {split} sources are no more than <unk> in the binary data set; to "
                "translate them, give the text to fairseq-interactive, or preprocess and load it with --dataset-impl raw"
            )

    def forced(self, sample: dict[str, Any], prefix_tokens: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        return prefix_tokens, sample["net_input"]["src_tokens"]
