"""fairseq's translation task with a prior over the target's words."""

import logging
import os
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import FairseqDataset
from fairseq.models import BaseFairseqModel, FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.merged_targets import merged_target
from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.evidence.table import EvidenceTable
from fairseq_llrnn.head.source_embedding import SourceEmbedding
from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.compat.data_folders import check_first_folder, check_folders, data_folder
from fairseq_llrnn.plugin.compat.dictionaries import (
    known_words,
    open_source,
    open_target,
    open_words,
)
from fairseq_llrnn.plugin.data.evidence_data import MergedTargets, UnknownAliases, warn_of_lost_evidence
from fairseq_llrnn.plugin.data.invented_evidence import InventedEvidence
from fairseq_llrnn.plugin.data.invented_groups import InventedGroups
from fairseq_llrnn.plugin.data.invented_terms import InventedTerms, TermMarks
from fairseq_llrnn.plugin.data.rare_word_aliases import RareWordAliases
from fairseq_llrnn.plugin.data.term_columns import before_tab
from fairseq_llrnn.plugin.models.character_options import CNN, NONE
from fairseq_llrnn.plugin.models.experts import open_panel
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.search.columns import has_slots
from fairseq_llrnn.plugin.search.length import search_where_there_are_words
from fairseq_llrnn.plugin.tasks.base import (
    PriorConfig,
    PriorTask,
    criterion_name,
    dictionary_advice,
    load_task_prior,
    named_experts,
    named_split,
)
from fairseq_llrnn.plugin.tasks.evidence import EvidenceConfig, check_evidence_options, counted_in_search
from fairseq_llrnn.plugin.tasks.source_prior import SourceSide
from fairseq_llrnn.plugin.tasks.terms import TermConfig, check_term_options, has_terms, open_terms, word_forms
from fairseq_llrnn.prior.parts.evidence import EvidencePart, evidence_table
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.parts.open_vocabulary import open_table

logger = logging.getLogger(__name__)


@dataclass
class LLRNNTranslationConfig(PriorConfig, EvidenceConfig, TermConfig, TranslationConfig):
    """Options of fairseq's task, the priors, evidence and terms."""

    source_prior: Optional[str] = field(
        default=None,
        metadata={
            "help": "directory that `llrnn prior` wrote for the source's dictionary: the encoder reads words by their "
            "features (default, where a model is read: that of its training; in training: none, a table with a row per "
            "word)"
        },
    )
    train_subset: str = II("dataset.train_subset")
    seed: int = II("common.seed")


@registered(register_task, "llrnn_translation", dataclass=LLRNNTranslationConfig)
class LLRNNTranslationTask(SourceSide, PriorTask, TranslationTask):
    """Translation into words that have features and a background."""

    warned = False  # that some targets are empty
    warned_of: set[tuple[str, int]]  # data sets, and which part of them
    invented_groups: InventedGroups | None = None  # that training may ask for, once they are made
    lexical_warmup: int | None = None  # updates, of the model that was built; None: one that knows nothing of it

    @classmethod
    def setup_task(cls, cfg: Namespace, **kwargs: Any) -> "LLRNNTranslationTask":
        """Raises OptionError for --left-pad-target and wrong numbers, PriorError for a prior that does not fit."""
        if cfg.left_pad_target:
            raise OptionError(
                "--left-pad-target: not supported by llrnn_translation (a recurrent decoder would read the padding); "
                "leave it out"
            )
        check_evidence_options(cfg)
        known = [language for language in (cfg.source_lang, cfg.target_lang) if language is not None]
        check_first_folder(cfg.data, [f"dict.{language}.txt" for language in known])
        task: LLRNNTranslationTask = super().setup_task(cfg, **kwargs)
        task.warned_of = set()
        check_folders(cfg.data, [f"dict.{language}.txt" for language in (cfg.source_lang, cfg.target_lang)])
        task.prior = load_task_prior(cfg, task.target_dictionary, f"dict.{cfg.target_lang}.txt")
        source_file = os.path.join(data_folder(cfg.data), f"dict.{cfg.source_lang}.txt")
        task.prior.check_source_dictionary(task.source_dictionary.symbols, source_file, dictionary_advice(cfg))
        check_term_options(cfg, task.prior)
        task.read_source_prior(cfg.source_prior)
        opened = open_table(task.prior)
        if task.prior.find(EvidencePart) is not None:
            table = evidence_table(task.prior, cfg.max_slots, cfg.evidence_once)
            task.src_dict = open_source(task.source_dictionary, table)
            task.tgt_dict = open_target(task.target_dictionary, table)
            if has_terms(task.prior):
                task.src_dict.terms = open_terms(cfg, task.prior, task.source_prior)
        elif opened is not None:
            task.tgt_dict = open_words(task.target_dictionary, opened)
        expert = named_experts(cfg, kwargs.get("from_checkpoint", False))
        task.panel = open_panel(expert, task.prior, task.source_dictionary)
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """As fairseq's; where the prior has evidence, training sees unknown words, too.

        They are known ones read as unknown (plugin/data/evidence_data.py), and invented ones
        (plugin/data/invented_evidence.py). With an open vocabulary, rare words of the target are unknown, too
        (plugin/data/rare_word_aliases.py). Over pieces, and with terms, targets have slots as tokens
        (plugin/data/evidence_data.py).
        """
        training = self.is_training_data(split, combine, self.cfg.train_subset)
        with named_split(split, self.cfg.data):
            super().load_dataset(split, epoch, combine, **kwargs)
        pairs = self.datasets[split]
        if training:
            self.check_training_data(split)
        self._warn(split, epoch, training)
        if training and self.prior.find(EvidencePart) is not None:
            self._offer_unknown_words(split)
        table = open_table(self.prior)
        if training and table is not None:
            self.datasets[split] = RareWordAliases(self.datasets[split], self.prior, table, self.cfg.seed, True)
        if has_terms(self.prior):
            self._ask_for_terms(split, training, pairs if (epoch - 1) % self.folders == 0 else None)
        offers = self.long_slots
        if offers is not None:
            self.datasets[split] = MergedTargets(self.datasets[split], offers)

    @property
    def long_slots(self) -> EvidenceTable | None:
        """What sources offer where a slot may be several tokens of a target, which is then read with slots for them.

        So it is over pieces, and with terms.
        """
        table = None if self.prior.find(EvidencePart) is None else evidence_table(self.prior)
        return table if isinstance(table, PieceTable) or has_terms(self.prior) else None

    def as_written(self, source: Tensor, target: Tensor) -> Tensor:
        """A target (T,) as a search would write it for its source (L,): with slots as single tokens."""
        table = self.long_slots
        return target if table is None else merged_target(table, source, target)

    @property
    def folders(self) -> int:
        """How many have training data: an epoch reads one, in turn."""
        return len(utils.split_paths(self.cfg.data))

    def _ask_for_terms(self, split: str, training: bool, first: FairseqDataset | None) -> None:
        """Training sees invented terms; other sets have those of the run.

        Args:
            first: the pairs of the first folder, as they are; None where another one is read.
        """
        if training and self.cfg.terms is not None:
            raise OptionError(
                f"--terms {self.cfg.terms}: not supported in training, whose translations need not have these terms; "
                "leave it out: training invents its own (--invented-terms)"
            )
        if training and self.cfg.invented_terms > 0:
            if self.invented_groups is None:
                self.invented_groups = self._made_groups(split, first)
            self.datasets[split] = InventedTerms(
                self.datasets[split], self.prior, self.invented_groups, self.cfg.invented_terms, self.cfg.seed
            )
        elif self.cfg.terms is not None and self.cfg.dataset_impl != "raw":  # whose lines were marked as they were read
            self.datasets[split] = TermMarks(self.datasets[split], self.src_dict.terms)

    def _made_groups(self, split: str, first: FairseqDataset | None) -> InventedGroups:
        """Those of the first folder, also where training goes on in another one."""
        if first is None:
            own = self.datasets[split]
            super().load_dataset(split, 1, True)
            first, self.datasets[split] = self.datasets[split], own
        forms = word_forms(self.prior, self.cfg.term_forms)
        if not len(forms):
            logger.warning(
                "--term-forms: not given, and the prior has no features Lemma:…, so training can invent no terms: the "
                "model does not learn to choose their forms; say where forms are known from, e.g. --term-forms "
                "words.tsv, a table of `llrnn lexicon` (--invented-terms 0: none are wanted)"
            )
        return InventedGroups(first, self.prior, forms, self.cfg.seed)

    def _offer_unknown_words(self, split: str) -> None:
        """Read words of the sources of a training set as unknown, and put invented ones into its pairs."""
        if self.cfg.evidence_dropout > 0:
            self.datasets[split] = UnknownAliases(
                self.datasets[split], evidence_table(self.prior), self.cfg.evidence_dropout, self.cfg.seed
            )
        if self.cfg.invented_evidence > 0 and self.prior.find(LexicalPart) is not None:
            self.datasets[split] = InventedEvidence(
                self.datasets[split], self.prior, self.cfg.invented_evidence, self.cfg.seed
            )

    def _warn(self, split: str, epoch: int, training: bool) -> None:
        """Of what a user should know of the data, once of each part: of several, every epoch loads the next one."""
        part = (split, (epoch - 1) % self.folders)
        if part in self.warned_of:
            return
        self.warned_of.add(part)
        if self.prior.find(EvidencePart) is not None:
            name = split if self.folders == 1 else f"{split} (part {part[1] + 1} of {self.folders})"
            warn_of_lost_evidence(
                evidence_table(self.prior), name, self.datasets[split].src, self.source_dictionary.unk(),
                binary=self.cfg.dataset_impl != "raw",
            )  # fmt: skip
        # over pieces, a network that is given all of the background at once did not learn where to look
        pieces = self.prior.find(LexicalPart) is not None and self.prior.settings.get("pieces")
        if training and pieces and self.lexical_warmup == 0:
            logger.warning(
                "--lexical-warmup-updates: not given, with a prior of pieces and their lexical translations; over "
                "pieces, networks came to lean on these and translated badly; give a third of the updates or so"
            )

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """As fairseq's; raises OptionError for a model that does not translate, or does not read the source prior."""
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, FairseqEncoderDecoderModel):
            raise OptionError(
                f"{type(model).__name__}: expected a model that translates, with encoder and decoder, as --task "
                "llrnn_translation needs, found another kind; is it the right checkpoint, or --arch?"
            )
        given = self.cfg.source_prior is not None and not from_checkpoint
        if given and not any(isinstance(part, SourceEmbedding) for part in model.modules()):
            raise OptionError(
                f"--source-prior: expected a model of ours, found {type(model).__name__}, whose encoder would not read "
                "it; use an --arch of ours, as llrnn_lstm"
            )
        self.lexical_warmup = getattr(cfg, "lexical_warmup_updates", None)
        if getattr(cfg, "source_characters", NONE) == CNN:
            self.keep_unknown_source_words()
        return model

    def build_tokenizer(self, args: Any) -> Any:
        """As fairseq's; where the prior has terms, those behind a line are left as they are."""
        made = super().build_tokenizer(args)
        return before_tab(made) if has_terms(self.prior) else made

    def build_bpe(self, args: Any) -> Any:
        """As `build_tokenizer`."""
        made = super().build_bpe(args)
        return before_tab(made) if has_terms(self.prior) else made

    def build_criterion(self, cfg: Any, *from_checkpoint: bool) -> FairseqCriterion:
        """As every task's of ours; raises OptionError for one that would take slots for words."""
        name = criterion_name(cfg)
        if self.prior.find(EvidencePart) is not None and not name.startswith(("log_linear", "label_smoothed")):
            raise OptionError(
                f"--criterion {name}: expected log_linear, since the prior has evidence, of which no other knows; use "
                "that, and for models of fairseq --task translation"
            )
        return super().build_criterion(cfg, *from_checkpoint)

    def build_generator(
        self,
        models: list[BaseFairseqModel],
        args: Any,
        seq_gen_cls: type[SequenceGenerator] | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Callable[[int, Tensor], list[int]] | None = None,
    ) -> SequenceGenerator:
        """As every task's of ours; raises OptionError for models of which none knows the prior's evidence."""
        if self.prior.find(EvidencePart) is not None and not any(map(has_slots, models)):
            raise OptionError(
                "--path: expected a model that was trained with the prior, found none that knows its evidence; add "
                "one, or translate with --task translation"
            )
        return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)

    def inference_step(
        self,
        generator: SequenceGenerator,
        models: list[BaseFairseqModel],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """As every task's of ours, but an empty source has an empty translation.

        Nothing is forced on a sentence whose target is empty: no search could go on.
        """
        whole = super().inference_step
        ours = all(isinstance(model.decoder, LogLinearDecoder) for model in models)
        if not ours and self.prior.find(EvidencePart) is None:
            # a table with a row per word has none for strings outside the dictionary
            net_input = sample["net_input"]
            read = known_words(net_input["src_tokens"], self.source_dictionary)
            sample = sample | {"net_input": net_input | {"src_tokens": read}}
        if prefix_tokens is not None and prefix_tokens.size(1) > 0:
            empty = prefix_tokens[:, 0] == self.target_dictionary.eos()
            if bool(empty.any()) and not self.warned:
                self.warned = True
                logger.warning(
                    f"--prefix-size: {int(empty.sum())} targets of a batch are empty; their sentences are translated "
                    "without a forced beginning (one warning)"
                )
            prefix_tokens = prefix_tokens.masked_fill(empty.unsqueeze(1), self.target_dictionary.pad())
        if isinstance(generator, SequenceScorer):  # nothing is searched for
            return whole(generator, models, sample, prefix_tokens, constraints)
        with counted_in_search(self.cfg, self.prior):
            return search_where_there_are_words(
                lambda *batch: whole(generator, models, *batch), sample, prefix_tokens, constraints,
                self.target_dictionary.eos(), self.target_dictionary.pad(),
            )  # fmt: skip

    def forced(self, sample: dict[str, Any], prefix_tokens: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        return prefix_tokens, sample["net_input"]["src_tokens"]
