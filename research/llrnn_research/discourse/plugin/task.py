"""The task `discourse`: sentence encoders that learn ORDER, NEXT and CONJUNCTION, alone or together.

A batch has examples of one objective. Objectives alternate, because fairseq shuffles the batches of an epoch.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    Any,  # fairseq reads Optional[X] from its dataclasses, and not X | None
    Optional,  # fairseq reads Optional[X] from its dataclasses, and not X | None
)

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from omegaconf import II

from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.features.dictionary import OpenWords, load_dictionary
from fairseq_llrnn.plugin.models.extensions import takes
from fairseq_llrnn.plugin.tasks.source_prior import load_source_prior
from fairseq_llrnn.plugin.tasks.task import PluginTask
from fairseq_llrnn.prior.prior import Prior
from llrnn_research.discourse import OBJECTIVES
from llrnn_research.discourse.data import (
    ANSWERS,
    DICTIONARY,
    SENTENCES,
    Split,
    load_split,
    load_strings,
    read_description,
)
from llrnn_research.discourse.data import LENGTH as LONG_EXAMPLE


class DiscourseDataset(FairseqDataset):
    """The examples of some objectives, one objective after the other."""

    def __init__(
        self, split: Split, objectives: Sequence[str], max_words: int, pad: int, drawn: Mapping[str, int] | None
    ) -> None:
        """
        Args:
            max_words: maximal length of a sentence, which is truncated.
            drawn: number of examples of each objective in an epoch of training, sampled in each epoch. None: not in
                training, all examples in order.
        """
        self.split, self.objectives, self.max_words, self.pad = split, list(objectives), max_words, pad
        self.drawn = drawn
        self.begins = np.cumsum([0, *(len(split.examples[name]) for name in objectives)])
        lengths = np.minimum(split.lengths(), max_words)
        # the size of an example for --max-tokens: its number of sentences times the longest length
        self.sizes = np.concatenate(
            [
                (rows.shape[1] - 1) * lengths[rows[:, :-1]].max(1, initial=0)
                for rows in (split.examples[name] for name in objectives)
            ]
        )

    def __len__(self) -> int:
        return int(self.begins[-1])

    def __getitem__(self, index: int) -> dict[str, Any]:
        objective = int(np.searchsorted(self.begins, index, side="right")) - 1
        row = self.split.examples[self.objectives[objective]][index - self.begins[objective]]
        sentences = [self.split.sentence(number)[: self.max_words] for number in row[:-1]]
        return {"id": index, "objective": self.objectives[objective], "sentences": sentences, "answer": int(row[-1])}

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a batch with src_tokens (B, sentences of an example, L), padded on the right, and the answers (B,)."""
        if not samples:
            return {}
        longest = max(len(sentence) for sample in samples for sentence in sample["sentences"])
        tokens = np.full((len(samples), len(samples[0]["sentences"]), longest), self.pad, dtype=np.int64)
        for i, sample in enumerate(samples):
            for j, sentence in enumerate(sample["sentences"]):
                tokens[i, j, : len(sentence)] = sentence
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "objective": samples[0]["objective"],
            "net_input": {"src_tokens": torch.from_numpy(tokens)},
            "target": torch.tensor([sample["answer"] for sample in samples]),
            "ntokens": sum(len(sentence) for sample in samples for sentence in sample["sentences"]),
            "nsentences": len(samples),
        }

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """In training, sample examples of each objective and sort them by size. fairseq sets the seed."""
        if self.drawn is None:
            return np.arange(len(self))
        parts = []
        for name, begin, end in zip(self.objectives, self.begins, self.begins[1:], strict=False):
            chosen = begin + np.random.permutation(end - begin)[: self.drawn[name]]
            parts.append(chosen[np.argsort(self.sizes[chosen], kind="stable")])
        return np.concatenate(parts)

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """Batch each objective separately. --batch-size counts pairs, and NEXT gets a quarter as many examples.

        `required_batch_size_multiple` is ignored: fairseq would drop the remainder, a large share of the few
        CONJUNCTION examples.
        """
        batches: list[np.ndarray] = []
        objective = np.searchsorted(self.begins, indices, side="right") - 1
        for i, name in enumerate(self.objectives):
            of_objective = indices[objective == i]
            room = max_sentences
            if room is not None and name == "next":
                room = max(1, 2 * room // LONG_EXAMPLE)
            if len(of_objective):
                batches.extend(super().batch_by_size(of_objective, max_tokens, room))
        return batches


logger = logging.getLogger(__name__)


NAME = "discourse"
NEXT_SHARE = 0.25  # of the NEXT examples, if other objectives are learned: they have eight sentences, others two


@dataclass
@takes(NAME)
class DiscourseConfig(FairseqDataclass):
    """Options of the task."""

    data: Optional[str] = field(default=None, metadata={"help": "data folder of `llrnn discourse`"})
    objectives: str = field(
        default=",".join(OBJECTIVES),
        metadata={"help": f"objectives to learn: one of {', '.join(OBJECTIVES)}, or several, separated by commas"},
    )
    epoch_examples: int = field(
        default=0,
        metadata={
            "help": "most examples of an objective in an epoch, sampled again in each, which balances objectives with "
            "few and many examples (default: 0, all examples)"
        },
    )
    max_words: int = field(default=60, metadata={"help": "maximal length of a sentence in words; the rest is dropped"})
    source_prior: Optional[str] = field(
        default=None,
        metadata={
            "help": "directory of a prior for dict.txt of the data folder, whose features are the input of words "
            "(default: a table with a row per word)"
        },
    )
    train_subset: str = II("dataset.train_subset")
    finetune_from_model: Optional[str] = II("checkpoint.finetune_from_model")
    save_dir: str = II("checkpoint.save_dir")


@register_task(NAME, dataclass=DiscourseConfig)
class DiscourseTask(PluginTask):
    """Learn the order of sentences, the next sentence, and the relation between sentences."""

    def __init__(self, cfg: DiscourseConfig, dictionary: Dictionary, words: OpenWords, prior: Prior | None) -> None:
        super().__init__(cfg)
        self.dictionary, self.source_words, self.source_prior = dictionary, words, prior
        self.objectives = cfg.objectives.split(",")

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> "DiscourseTask":
        """Raise OptionError for invalid values, and DataError for an invalid folder."""
        names = cfg.objectives.split(",")
        if len(set(names)) < len(names) or not set(names) <= set(OBJECTIVES):
            raise OptionError(
                f"--objectives {cfg.objectives}: expected some of {', '.join(OBJECTIVES)}, separated by commas, each "
                "once, e.g. order,conjunction"
            )
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
        """Load a split. Raises DataError if it is missing, damaged, or lacks examples of an objective."""
        folder = Path(self.cfg.data)
        if not os.path.isfile(folder / f"{split}.npz"):
            splits = ", ".join(sorted(file.stem for file in folder.glob("*.npz")))
            raise DataError(
                f"{folder}: expected the data set {split!r} (--train-subset, --valid-subset), found "
                f"{splits or 'none'}; give `llrnn discourse` a text for it"
            )
        loaded = load_split(folder, split)
        for name in self.objectives:
            if not len(loaded.examples[name]):
                raise DataError(
                    f"{folder}: expected examples of {name.upper()} in {split}, found none; leave {name} out of "
                    f"--objectives, or make the folder from a text that has {_needed(name)}"
                )
        _log_chance(split, loaded, self.objectives)
        training = self.is_training_data(split, combine, self.cfg.train_subset)
        drawn = {name: self._drawn(name, len(loaded.examples[name])) for name in self.objectives} if training else None
        data = DiscourseDataset(loaded, self.objectives, self.cfg.max_words, self.dictionary.pad(), drawn)
        self.datasets[split] = data
        self.datasets[split] = self.extended(data, split, 1, training, self.load_dataset)  # there is one folder alone

    def begins_elsewhere(self) -> bool:
        """Return whether the weights come from --finetune-from-model, because training has saved nothing yet."""
        return bool(self.cfg.finetune_from_model) and not os.path.exists(Path(self.cfg.save_dir, "checkpoint_last.pt"))

    def _drawn(self, objective: str, examples: int) -> int:
        """Return the number of examples in an epoch."""
        most = min(examples, self.cfg.epoch_examples or examples)
        return max(1, round(most * NEXT_SHARE)) if objective == "next" and len(self.objectives) > 1 else most

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
        "conjunction": "sentences that begin with a conjunction of the --language and a comma",
    }[objective]


def _log_chance(split: str, loaded: Split, objectives: list[str]) -> None:
    """Log the number of examples, and the accuracy of the most frequent answer."""
    for name in objectives:
        answers = loaded.examples[name][:, -1]
        chance = max((answers == i).mean() for i in range(ANSWERS[name]))
        logger.info(f"{split}: {len(answers):,} examples of {name.upper()}, chance {chance:.1%}")
