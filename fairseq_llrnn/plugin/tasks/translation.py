"""fairseq's translation task with a prior over the target's words."""

import logging
import os
from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.data.data_utils import infer_language_pair
from fairseq.models import BaseFairseqModel, FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.compat.dictionaries import OpenDictionary, reads_strings, with_unk
from fairseq_llrnn.plugin.compat.moved_folders import check_first_folder, check_folders, data_folder
from fairseq_llrnn.plugin.compat.option_checks import other_model
from fairseq_llrnn.plugin.models.extensions import takes
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.search.columns import has_slots
from fairseq_llrnn.plugin.search.length import search_nonempty
from fairseq_llrnn.plugin.tasks.evidence_options import (
    EvidenceConfig,
    check_evidence_is_used,
    check_evidence_options,
    counted_in_search,
)
from fairseq_llrnn.plugin.tasks.prior_task import PriorConfig, PriorTask, dictionary_advice, load_task_prior
from fairseq_llrnn.plugin.tasks.source_prior import SourceSide
from fairseq_llrnn.source_embedding import SourceEmbedding

if TYPE_CHECKING:
    from fairseq_llrnn.plugin.data.invented_evidence import OfferedStrings

logger = logging.getLogger(__name__)


NAME = "llrnn_translation"


@dataclass
@takes(NAME)
class LLRNNTranslationConfig(PriorConfig, EvidenceConfig, TranslationConfig):
    """Options of fairseq's task, of the priors and of evidence."""

    source_prior: Optional[str] = field(
        default=None,
        metadata={
            "help": "folder of `llrnn prior` for the source's dictionary: the encoder reads words by their features "
            "(default: none in training, a table with a row per word; with a checkpoint, that of its training)"
        },
    )
    train_subset: str = II("dataset.train_subset")
    seed: int = II("common.seed")


@register_task(NAME, dataclass=LLRNNTranslationConfig)
class LLRNNTranslationTask(SourceSide, PriorTask, TranslationTask):
    """Translation into words with features and a background."""

    warned_of: set[tuple[str, int]]  # data sets and their parts that were reported
    offered: "OfferedStrings | None" = None  # changes for the prior's evidence
    lexical_warmup: int | None = None  # in updates, of the last built model; None: it has no such option

    @classmethod
    def setup_task(cls, cfg: Namespace, **kwargs: Any) -> "LLRNNTranslationTask":
        """Set up the task.

        Raises:
            OptionError: --left-pad-target, or values out of range. PriorError: the prior does not fit. DataError: data
                of one language.
        """
        if cfg.left_pad_target:
            raise OptionError(
                "--left-pad-target: not supported by llrnn_translation (a recurrent decoder would read the padding); "
                "remove it"
            )
        check_evidence_options(cfg)
        languages = [language for language in (cfg.source_lang, cfg.target_lang) if language is not None]
        check_first_folder(cfg.data, [f"dict.{language}.txt" for language in languages])
        folder = data_folder(cfg.data)
        if len(languages) < 2 and None in infer_language_pair(folder):
            raise DataError(
                f"{folder}: expected the data of a translation, with files such as train.en-cs.en.bin that name its "
                "two languages, found none; name the folder of a bitext, or add --source-lang and --target-lang",
                folder,
            )
        task: LLRNNTranslationTask = super().setup_task(cfg, **kwargs)
        task.warned_of = set()
        check_folders(cfg.data, [f"dict.{language}.txt" for language in (cfg.source_lang, cfg.target_lang)])
        task.prior = load_task_prior(cfg, task.target_dictionary, f"dict.{cfg.target_lang}.txt")
        source_file = os.path.join(folder, f"dict.{cfg.source_lang}.txt")
        task.prior.check_source_dictionary(task.source_dictionary.symbols, source_file, dictionary_advice(cfg))
        task.read_source_prior(cfg.source_prior)
        if task.prior.offered_kinds:
            from fairseq_llrnn.plugin.data.invented_evidence import OfferedStrings

            task.offered = OfferedStrings(task)
        if task.prior.has_source_strings:
            session = task.prior.session
            task.src_dict = OpenDictionary(task.source_dictionary, session.source, task.prior.source_index)
            task.tgt_dict = OpenDictionary(task.target_dictionary, session.target)
        elif task.prior.open_words is not None:
            task.tgt_dict = OpenDictionary(task.target_dictionary, task.prior.open_words.words)
        task.extend(NAME, kwargs.get("from_checkpoint", False))
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load data like fairseq. If the prior has evidence, training reads some words as unknown.

        These are known words read as unknown, and in an open vocabulary rare words of the target
        (plugin/data/evidence_data.py), and invented words (plugin/data/invented_evidence.py). Over pieces, and if a
        system requires strings, targets have slots as tokens (plugin/data/evidence_data.py).
        """
        training = self.is_training_data(split, combine, self.cfg.train_subset)
        read = super().load_dataset
        with self.reading(split):
            read(split, epoch, combine, **kwargs)
        pairs = self.datasets[split]
        if training:
            check_evidence_is_used(self.cfg, self.prior)
            self.check_training_data(split)
        self._warn(split, epoch, training)
        data, opened = pairs, self.prior.open_words
        if training and self.offered is not None:
            data = self.offered.with_unknown_words(data)
        if training and opened is not None:
            from fairseq_llrnn.plugin.data.evidence_data import RareWordAliases

            data = RareWordAliases(data, self.prior, opened, self.cfg.seed, True)
        data = self.extended(data, split, epoch, training, read)
        if self.offered is not None:
            data = self.offered.with_slots(data)
            data = self.offered.with_text(data, pairs) if training else data
        self.datasets[split] = data

    def retokenize(self, source: Tensor, target: Tensor) -> Tensor:
        """Return a target (T,) as a search would write it for its source (L,), with slots as single tokens."""
        return target if self.offered is None else self.offered.retokenize(source, target)

    def _warn(self, split: str, epoch: int, training: bool) -> None:
        """Warn about the data, once for each part: with several folders, every epoch loads the next one."""
        part = (split, (epoch - 1) % self.folders)
        if part in self.warned_of:
            return
        self.warned_of.add(part)
        if self.offered is not None:
            name = split if self.folders == 1 else f"{split} (part {part[1] + 1} of {self.folders})"
            self.offered.warn(name, self.datasets[split].src)
        # over pieces, networks with the full background from the start did not learn to attend
        pieces = self.prior.translations is not None and self.prior.settings.get("pieces")
        if training and pieces and self.lexical_warmup == 0:
            logger.warning(
                "--lexical-warmup-updates is missing: with a prior of pieces and lexical translations, networks relied "
                "on these translations and translated badly; set it to about a third of the updates"
            )

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Build a model like fairseq. Raises OptionError if it does not translate, or does not use the source prior."""
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, FairseqEncoderDecoderModel):
            raise OptionError(
                f"{type(model).__name__}: --task llrnn_translation needs a translation model with encoder and decoder, "
                f"found another kind; {other_model()}"
            )
        reads_source_prior = self.cfg.source_prior is not None and not from_checkpoint
        if reads_source_prior and not any(isinstance(part, SourceEmbedding) for part in model.modules()):
            raise OptionError(
                f"--source-prior: the encoder of {type(model).__name__} cannot read it; use an --arch of this package, "
                "such as llrnn_lstm"
            )
        self.lexical_warmup = getattr(cfg, "lexical_warmup_updates", None)
        if reads_strings(model.encoder):
            self.keep_unknown_source_words()
        return model

    def build_generator(self, models: list[BaseFairseqModel], *arguments: Any, **named: Any) -> SequenceGenerator:
        """Build a generator like other tasks of ours. Raises OptionError if no model has the prior's strings."""
        if self.prior.has_source_strings and not any(map(has_slots, models)):
            raise OptionError(
                "--path: expected a model that was trained with the prior, found none with its strings of the source "
                "(evidence); add one, or translate with --task translation"
            )
        return super().build_generator(models, *arguments, **named)

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """Search like other tasks of ours, but an empty source has an empty translation."""
        infer = super().inference_step
        all_ours = all(isinstance(model.decoder, LogLinearDecoder) for model in models)
        if not all_ours and not self.prior.has_source_strings:
            # an embedding table has no rows for strings outside the dictionary
            net_input = sample["net_input"]
            read = with_unk(net_input["src_tokens"], self.source_dictionary)
            sample = sample | {"net_input": net_input | {"src_tokens": read}}
        if isinstance(generator, SequenceScorer):  # no search
            return infer(generator, models, sample, prefix_tokens, constraints)
        with counted_in_search(self.cfg, self.prior):
            return search_nonempty(
                lambda *batch: infer(generator, models, *batch), sample, prefix_tokens, constraints,
                self.target_dictionary.eos(), self.target_dictionary.pad(),
            )  # fmt: skip

    def forced(self, sample: dict[str, Any], prefix_tokens: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        return prefix_tokens, sample["net_input"]["src_tokens"]
