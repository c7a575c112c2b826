"""The task `discourse`: sentence encoders that learn ORDER, NEXT and CONJUNCTION, alone or together."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II

from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.features.dictionary import OpenWords, load_dictionary
from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.models.extensions import takes
from fairseq_llrnn.plugin.tasks.source_prior import load_source_prior
from fairseq_llrnn.plugin.tasks.task import PluginTask
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.discourse import OBJECTIVES
from fairseq_llrnn.systems.discourse.data import (
    ANSWERS,
    DICTIONARY,
    SENTENCES,
    Split,
    load_split,
    load_strings,
    read_description,
)
from fairseq_llrnn.systems.discourse.plugin.dataset import DiscourseDataset

logger = logging.getLogger(__name__)


NAME = "discourse"


@dataclass
@takes(NAME)
class DiscourseConfig(FairseqDataclass):
    """Options of the task."""

    data: Optional[str] = field(default=None, metadata={"help": "data folder that `llrnn discourse` wrote"})
    objectives: str = field(
        default=",".join(OBJECTIVES),
        metadata={"help": f"what is learned: one of {', '.join(OBJECTIVES)}, or several with commas, in turn"},
    )
    next_share: float = field(
        default=0.25,
        metadata={
            "help": "share of the NEXT examples that an epoch has where NEXT is learned beside other objectives: each "
            "has eight sentences, those of the others two"
        },
    )
    epoch_examples: int = field(
        default=0,
        metadata={
            "help": "most examples of an objective in an epoch, drawn anew in each, so that objectives with few of "
            "them take as many batches as others (default: 0, all examples)"
        },
    )
    max_words: int = field(default=60, metadata={"help": "words of a sentence that are read"})
    source_prior: Optional[str] = field(
        default=None,
        metadata={
            "help": "directory that `llrnn prior` wrote for dict.txt of the data folder: words are read by their "
            "features (default: a table with a row per word)"
        },
    )
    train_subset: str = II("dataset.train_subset")
    finetune_from_model: Optional[str] = II("checkpoint.finetune_from_model")
    save_dir: str = II("checkpoint.save_dir")


@registered(register_task, NAME, dataclass=DiscourseConfig)
class DiscourseTask(PluginTask):
    """Which sentence comes first, which comes next, and how it goes on."""

    def __init__(self, cfg: DiscourseConfig, dictionary: Dictionary, words: OpenWords, prior: Prior | None) -> None:
        super().__init__(cfg)
        self.dictionary, self.source_words, self.source_prior = dictionary, words, prior
        self.objectives = cfg.objectives.split(",")

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> "DiscourseTask":
        """Raises OptionError for values that cannot be meant, DataError for a folder of another kind."""
        names = cfg.objectives.split(",")
        if len(set(names)) < len(names) or not set(names) <= set(OBJECTIVES):
            raise OptionError(
                f"--objectives {cfg.objectives}: expected some of {', '.join(OBJECTIVES)} with commas between them, "
                "each once; e.g. order,conjunction"
            )
        if not 0.0 < cfg.next_share <= 1.0:
            raise OptionError(f"--next-share {cfg.next_share}: expected a share above 0, up to 1, e.g. 0.25")
        check_least("--max-words", cfg.max_words, 1)
        check_least("--epoch-examples", cfg.epoch_examples, 0)
        folder = Path(cfg.data)
        read_description(folder)
        words = OpenWords(load_dictionary(folder / DICTIONARY).symbols)
        for string in load_strings(folder):
            words.open(string)
        dictionary = Dictionary.load(str(folder / DICTIONARY))
        task = cls(cfg, dictionary, words, load_source_prior(cfg.source_prior, dictionary, folder / DICTIONARY))
        task.extend(NAME, kwargs.get("from_checkpoint", False))
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Raises DataError: no such split, a damaged one, or one without examples of an objective that is learned."""
        folder = Path(self.cfg.data)
        if not os.path.isfile(folder / f"{split}.npz"):
            there = ", ".join(sorted(file.stem for file in folder.glob("*.npz")))
            raise DataError(
                f"{folder}: expected the data set {split!r} (--train-subset, --valid-subset), found {there or 'none'}; "
                f"choose one of them, or give `llrnn discourse` a text for it"
            )
        loaded = load_split(folder, split)
        for name in self.objectives:
            if not len(loaded.examples[name]):
                raise DataError(
                    f"{folder}: expected examples of {name.upper()} in {split}, found none; leave {name} out of "
                    f"--objectives, or make the folder from a text that has {_needed(name)}"
                )
        _say(split, loaded, self.objectives)
        training = self.is_training_data(split, combine, self.cfg.train_subset)
        drawn = {name: self._drawn(name, len(loaded.examples[name])) for name in self.objectives} if training else None
        data = DiscourseDataset(loaded, self.objectives, self.cfg.max_words, self.dictionary.pad(), drawn)
        self.datasets[split] = data
        self.datasets[split] = self.extended(data, split, 1, training, self.load_dataset)  # there is one folder alone

    def begins_elsewhere(self) -> bool:
        """Whether the weights are those of --finetune-from-model: training has saved nothing yet."""
        return bool(self.cfg.finetune_from_model) and not os.path.exists(Path(self.cfg.save_dir, "checkpoint_last.pt"))

    def _drawn(self, objective: str, examples: int) -> int:
        """How many of the examples an epoch has."""
        many = min(examples, self.cfg.epoch_examples or examples)
        return max(1, round(many * self.cfg.next_share)) if objective == "next" and len(self.objectives) > 1 else many

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    @property
    def target_dictionary(self) -> None:
        return None


def _needed(objective: str) -> str:
    return {
        "order": "paragraphs of two sentences",
        "next": f"paragraphs of {SENTENCES['next']} sentences",
        "conjunction": "sentences that begin with a conjunction and a comma, in the --language that it is in",
    }[objective]


def _say(split: str, loaded: Split, objectives: list[str]) -> None:
    """How many examples there are, and how often the most frequent answer is right."""
    for name in objectives:
        answers = loaded.examples[name][:, -1]
        chance = max((answers == i).mean() for i in range(ANSWERS[name]))
        logger.info(f"{split}: {len(answers):,} examples of {name.upper()}, chance {chance:.1%}")
