"""fairseq's language-modelling task with a prior."""

import logging
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from fairseq.data import FairseqDataset
from fairseq.models import BaseFairseqModel
from fairseq.search import Sampling
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask
from omegaconf import II
from torch import Tensor

from fairseq_llrnn.errors import check_unused_options
from fairseq_llrnn.plugin.compat.dictionaries import OpenDictionary
from fairseq_llrnn.plugin.compat.moved_folders import check_first_folder, check_folders
from fairseq_llrnn.plugin.data.zero_mass import check_whole_sentences
from fairseq_llrnn.plugin.models.extensions import takes
from fairseq_llrnn.plugin.tasks.prior_task import PriorConfig, PriorTask, load_task_prior

logger = logging.getLogger(__name__)

NAME = "llrnn_language_modeling"


@dataclass
@takes(NAME)
class LLRNNLanguageModelingConfig(PriorConfig, LanguageModelingConfig):
    """Options of fairseq's task, and of the prior."""

    train_subset: str = II("dataset.train_subset")


@register_task(NAME, dataclass=LLRNNLanguageModelingConfig)
class LLRNNLanguageModelingTask(PriorTask, LanguageModelingTask):
    """Language modelling over words with features and a background."""

    warned_of_equal = False  # whether equal hypotheses of a data set were reported

    @classmethod
    def setup_task(cls, args: Namespace, from_checkpoint: bool = False) -> "LLRNNLanguageModelingTask":
        """Set up the task. `from_checkpoint`: whether `args` come from a checkpoint, as for fairseq-validate."""
        _check_unsupported(args)
        check_first_folder(args.data, ["dict.txt"])
        task: LLRNNLanguageModelingTask = super().setup_task(args)
        check_folders(args.data, ["dict.txt"])
        task.prior = load_task_prior(args, task.dictionary, "dict.txt")
        table = task.prior.open_words
        if table is not None:
            task.dictionary = task.output_dictionary = OpenDictionary(task.dictionary, table.words)
        task.extend(NAME, from_checkpoint)
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load data like fairseq. With an open vocabulary, training reads some rare words as unknown.

        Raises:
            OptionError: blocks that cut sentences, if the background needs whole ones.
            DataError: training sentences of probability 0, if these are an error.
        """
        training = self.is_training_data(split, combine, self.args.train_subset)
        if training:
            shortened = self.args.shorten_data_split_list.split(",")
            shorten = self.args.shorten_method if shortened == [""] or split in shortened else "none"
            check_whole_sentences(self.prior, self.args.sample_break_mode, shorten)
        read = super().load_dataset
        with self.reading(split):
            read(split, epoch, combine, **kwargs)
        if training:
            self.check_training_data(split)
        data, table = self.datasets[split], self.prior.open_words
        if training and table is not None:
            from fairseq_llrnn.plugin.data.evidence_data import RareWordAliases

            data = RareWordAliases(data, self.prior, table, self.args.seed, False)
        self.datasets[split] = self.extended(data, split, epoch, training, read)

    def eval_lm_dataloader(self, dataset: FairseqDataset, *args: Any, **kwargs: Any) -> Any:
        """Load batches like fairseq. Its scorer needs <unk> for strings outside the dictionary."""
        if self.prior.open_words is not None:
            from fairseq_llrnn.plugin.data.evidence_data import WithUnk

            logger.warning("llrnn eval-lm counts unknown words as <unk>; `llrnn score --open` spells them")
            dataset = WithUnk(dataset, self.dictionary)
        return super().eval_lm_dataloader(dataset, *args, **kwargs)

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """Search like other tasks of ours. The prefixes in a search over a data set are the words of --prefix-size
        only.

        fairseq would begin each hypothesis with its whole sentence, and compare both (BLEU).
        """
        if self.datasets and not isinstance(generator, SequenceScorer):
            prefix_tokens = sample["target"][:, :0] if prefix_tokens is None else prefix_tokens
            sample["target"] = None
            is_random = isinstance(getattr(generator.search, "search", generator.search), Sampling)
            if prefix_tokens.size(1) == 0 and not is_random and not self.warned_of_equal:
                self.warned_of_equal = True
                logger.warning(
                    "without --prefix-size, all sentences have the same hypotheses; use --prefix-size N to continue "
                    "the first N words of each, or --sampling --beam 1 to sample sentences"
                )
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)

    def forced(self, sample: dict[str, Any], prefix_tokens: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        prefix = prefix_tokens
        if prefix is None:  # fairseq then uses the source, without the initial </s>
            prefix = sample["net_input"]["src_tokens"]
            prefix = prefix[:, 1:] if bool(prefix[:, :1].eq(self.dictionary.eos()).all()) else prefix
        return prefix, None


# options of fairseq's task without the same meaning here, with the reason
UNSUPPORTED = {
    "add_bos_token": "sentences begin with </s>, as in fairseq's default; <s> is never predicted",
    "self_target": "the model predicts the next word only",
    "past_target": "the model predicts the next word only",
    "output_dictionary_size": "every word of the dictionary has a signature",
}


def _check_unsupported(args: Namespace) -> None:
    for name, reason in UNSUPPORTED.items():
        value = getattr(args, name, None)
        if value not in (None, False, -1):
            check_unused_options({name: value}, f"not supported by {NAME} ({reason}); remove it")
