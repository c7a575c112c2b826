"""The task llrnn_classification: texts and their labels, with a probability for each label.

    fairseq-preprocess --source-lang text --target-lang labels --trainpref train --validpref valid --destdir data-bin
    llrnn prior --labels --dict data-bin/dict.labels.txt --out data-bin/prior

train.text has a text a line, and train.labels its labels, separated by blanks.
"""

import logging
import os
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.compat.dictionaries import reads_strings
from fairseq_llrnn.plugin.compat.moved_folders import check_first_folder, check_folders
from fairseq_llrnn.plugin.compat.option_checks import no_such_split
from fairseq_llrnn.plugin.models.extensions import takes
from fairseq_llrnn.plugin.tasks.prior_task import PriorConfig, PriorTask, load_task_prior
from fairseq_llrnn.plugin.tasks.source_prior import SourceSide
from fairseq_llrnn.systems.classification.label_hits import LabelHits
from fairseq_llrnn.systems.classification.plugin.label_decoder import LabelModel
from fairseq_llrnn.systems.classification.plugin.labelled_texts import ALL, ONE, LabelledTexts, Labels

logger = logging.getLogger(__name__)
BEST = 5  # predicted labels per text in validation
HITS = "hits_"  # prefix of the counts of LabelHits in logs


NAME = "llrnn_classification"


@dataclass
@takes(NAME)
class LLRNNClassificationConfig(PriorConfig):
    """Data, prior of the labels, and their options."""

    data: Optional[str] = field(
        default=None, metadata={"help": "data folder of fairseq-preprocess (or several, separated by colons)"}
    )
    source_lang: str = field(
        default="text", metadata={"help": "name of the texts in --source-lang of fairseq-preprocess"}
    )
    target_lang: str = field(
        default="labels", metadata={"help": "name of the labels in --target-lang of fairseq-preprocess"}
    )
    labels_per_text: ChoiceEnum([ALL, ONE]) = field(  # type: ignore[valid-type]
        default=ALL,
        metadata={
            "help": "for a text with several labels, each epoch uses all of them, as separate examples, or one sampled "
            "at random"
        },
    )
    source_prior: Optional[str] = field(
        default=None,
        metadata={
            "help": "directory of a prior for the dictionary of the texts, whose features are the encoder's input "
            "(default: for a trained model, that of its training; in training none, a table with a row per word)"
        },
    )
    max_source_positions: int = field(default=1024, metadata={"help": "most words of a text, with </s>"})
    dataset_impl: Optional[str] = II("dataset.dataset_impl")
    train_subset: str = II("dataset.train_subset")
    seed: int = II("common.seed")


@register_task(NAME, dataclass=LLRNNClassificationConfig)
class LLRNNClassificationTask(SourceSide, PriorTask):
    """Texts with one or several labels, which have features and a background."""

    def __init__(self, cfg: Namespace, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        super().__init__(cfg)
        self.src_dict, self.tgt_dict = src_dict, tgt_dict
        self.counted = set[str]()  # splits whose missing labels were reported

    @property
    def source_dictionary(self) -> Dictionary:
        return self.src_dict

    @property
    def target_dictionary(self) -> Dictionary:
        return self.tgt_dict

    @classmethod
    def setup_task(cls, cfg: Namespace, **kwargs: Any) -> "LLRNNClassificationTask":
        """Raise PriorError for a prior that does not fit, and OptionError for a prior that is not of labels."""
        files = [f"dict.{side}.txt" for side in (cfg.source_lang, cfg.target_lang)]
        check_first_folder(cfg.data, files)
        check_folders(cfg.data, files)
        folder = utils.split_paths(cfg.data)[0]
        task = cls(cfg, *(cls.load_dictionary(os.path.join(folder, file)) for file in files))
        task.prior = load_task_prior(cfg, task.target_dictionary, files[1])
        if not task.prior.has_labels:
            raise OptionError(
                f"--prior {task.prior.folder}: expected a prior of labels, found one of the words of a text (with "
                f"shares of </s> and <unk>); build it with `llrnn prior --labels --dict "
                f"{os.path.join(folder, files[1])}`"
            )
        task.read_source_prior(cfg.source_prior)
        task.extend(NAME, kwargs.get("from_checkpoint", False))
        return task

    # ---- data -------------------------------------------------------------------------------------------------------

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load texts and labels of a split.

        Raises:
            OptionError: no such split.
            DataError: different numbers of texts and labels, or a text without labels.
        """
        training = self.is_training_data(split, combine, self.cfg.train_subset)
        self._read(split, epoch, training)
        self.datasets[split] = self.extended(self.datasets[split], split, epoch, training, self._read)

    def _read(self, split: str, epoch: int, training: bool) -> None:
        folders = utils.split_paths(self.cfg.data)
        folder = folders[(epoch - 1) % len(folders)]
        pair = f"{self.cfg.source_lang}-{self.cfg.target_lang}"
        with self.reading(split):
            texts, lines = (
                data_utils.load_indexed_dataset(
                    os.path.join(folder, f"{split}.{pair}.{side}"), dictionary, self.cfg.dataset_impl
                )
                for side, dictionary in (
                    (self.cfg.source_lang, self.source_dictionary),
                    (self.cfg.target_lang, self.target_dictionary),
                )
            )
        if texts is None or lines is None:
            raise OptionError(no_such_split(split, folder, self.cfg.train_subset))
        if len(texts) != len(lines):
            raise DataError(
                f"the {split} data: expected a line of labels for each text, found {len(texts):,} texts and "
                f"{len(lines):,} lines of labels; give fairseq-preprocess files with equal numbers of lines, "
                "without carriage returns, which it takes for ends of lines"
            )
        labels = Labels.read([lines[i] for i in range(len(lines))], self.target_dictionary)
        bare = np.flatnonzero(labels.num_labels + labels.unseen == 0)
        if len(bare):
            raise DataError(
                f"text {bare[0] + 1} of the {split} data: expected at least one label, found an empty line "
                f"({len(bare):,} such texts in all); remove these texts"
            )
        self._warn_about_missing(split, labels, training)
        # texts with unseen labels only are useless in training, and wrong answers in evaluation
        used = np.flatnonzero(labels.num_labels > 0) if training else np.arange(len(texts))
        if len(used) == 0:
            raise DataError(
                f"the {split} data: expected labels of the dictionary, found none; preprocess it with the dictionary "
                "of the training labels"
            )
        seed = self.cfg.seed if training and self.cfg.labels_per_text == ONE else None
        self.datasets[split] = LabelledTexts(
            texts, np.asarray(texts.sizes), labels, self.source_dictionary, self.target_dictionary.eos(), used, seed
        )

    def _warn_about_missing(self, split: str, labels: Labels, training: bool) -> None:
        """Warn once per split about labels missing in the dictionary."""
        unseen, lost = int(labels.unseen.sum()), int(((labels.num_labels == 0) & (labels.unseen > 0)).sum())
        if not unseen or split in self.counted:
            return
        self.counted.add(split)
        total = unseen + len(labels.ids)
        consequence = "are left out" if training else "count as wrong answers, and nothing in the loss"
        logger.warning(
            f"the {split} data: {unseen:,} of {total:,} labels are not in the dictionary of labels; {lost:,} of "
            f"{len(labels):,} texts have no other: they {consequence}"
        )

    def max_positions(self) -> int:
        return int(self.cfg.max_source_positions)

    # ---- model and criterion -----------------------------------------------------------------------------------------

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Build a model. Raises OptionError for a model that is not a classifier."""
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, LabelModel):
            raise OptionError(
                f"{type(model).__name__}: --task llrnn_classification needs a classifier; use --arch llrnn_bag or "
                "llrnn_classifier"
            )
        if reads_strings(model.encoder):
            self.keep_unknown_source_words()
        return model

    def build_generator(
        self, models: list[BaseFairseqModel], args: Any, *more: Any, **options: Any
    ) -> SequenceGenerator:
        """Raise OptionError, because a classifier generates no text."""
        raise OptionError("--task llrnn_classification: a classifier writes no text; use `llrnn classify --path FILE`")

    def valid_step(
        self, sample: dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Run fairseq's step, and count correct labels."""
        loss, size, log = super().valid_step(sample, model, criterion)
        if not sample["ntokens"]:  # --sentence-avg counts padding
            size = log["sample_size"] = 0
        net_input = sample["net_input"]
        with torch.no_grad():
            _, best = model.best_labels(net_input["src_tokens"], net_input["src_lengths"], BEST)
        hits = LabelHits()
        for row, gold, unseen in zip(best.tolist(), sample["gold"], sample["gold_unseen"].tolist(), strict=True):
            hits.add(row, set(gold.tolist()), unseen)
        return loss, size, log | {f"{HITS}{name}": value for name, value in vars(hits).items()}

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: FairseqCriterion) -> None:
        """Log fairseq's metrics, and p_at_1, p_at_5 and r_at_5 in percent."""
        FairseqTask.reduce_metrics(self, logging_outputs, criterion)
        total = LabelHits()
        for log in logging_outputs:
            for name in vars(total):
                setattr(total, name, getattr(total, name) + int(log.get(f"{HITS}{name}", 0)))
        if total.texts:
            metrics.log_scalar("p_at_1", total.p_at_1, total.texts, round=2)
            metrics.log_scalar("p_at_5", total.p_at_5, total.texts, round=2)
            metrics.log_scalar("r_at_5", total.r_at_5, total.labels, round=2)
