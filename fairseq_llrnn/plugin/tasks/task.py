"""The base of all tasks of ours, with a prior or without: it checks its options, and resumes exactly."""

import gc
import weakref
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from fairseq import utils
from fairseq.data import FairseqDataset
from fairseq.tasks import FairseqTask

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.compat.counted_gpus import check_single_process
from fairseq_llrnn.plugin.compat.option_checks import check_when_parsed
from fairseq_llrnn.plugin.compat.user_errors import enter_command
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, TaskExtension


class PluginTask(FairseqTask):
    """A task whose checkpoints are read as data and written whole (compat/task_checkpoints.py)."""

    extensions: tuple[TaskExtension, ...] = ()
    training_split: str | None = None  # the name of what training reads, once it is loaded
    unchanged: FairseqDataset | None = None  # that split as --valid-subset reads it, where it does
    batches_per_epoch = 0  # of what training reads, for this process
    progress: dict[str, Any] | None = None  # of the training, as the newest checkpoint has it (compat/resuming.py)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """The task's options. fairseq asks for them when a command line names the task."""
        super().add_args(parser)
        enter_command()
        check_when_parsed(parser)

    @property
    def options(self) -> Any:
        """Its own, wherever fairseq's kind of task keeps them."""
        return getattr(self, "args", self.cfg)

    @property
    def folders(self) -> int:
        """How many have training data: an epoch reads one, in turn."""
        return len(utils.split_paths(self.options.data))

    def extend(self, name: str, from_checkpoint: bool) -> None:
        """Open what extensions do in the task of that name."""
        opened = (one.task_extension(self, from_checkpoint) for one in EXTENSIONS if name in one.options)
        self.extensions = tuple(one for one in opened if one is not None)

    def extended(
        self, data: FairseqDataset, split: str, epoch: int, training: bool, read: Callable[..., None]
    ) -> FairseqDataset:
        """A data set, changed by extensions.

        Args:
            data: as the task would give it to the model.
            read: fairseq's `load_dataset`, which puts the data of an epoch among `datasets`, and has done so.
        """
        current = self.datasets[split]

        def first() -> FairseqDataset:
            if (epoch - 1) % self.folders:  # another folder's
                read(split, 1, True)
            first_data, self.datasets[split] = self.datasets[split], current
            return first_data

        for extension in self.extensions:
            data = extension.changed_data(data, training, first)
        return data

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """What fairseq adds to a checkpoint. It gives back what stands under the name of the class."""
        return {type(self).__name__: self.progress or {}}

    def set_checkpoint_dict(self, progress: dict[str, Any]) -> None:
        """What `get_checkpoint_dict` had when the checkpoint was saved."""
        self.progress = progress

    def build_tokenizer(self, args: Any) -> Any:
        """As fairseq's, and as extensions will have it."""
        return self._encoder(super().build_tokenizer(args))

    def build_bpe(self, args: Any) -> Any:
        """As `build_tokenizer`."""
        return self._encoder(super().build_bpe(args))

    def _encoder(self, encoder: Any) -> Any:
        for extension in self.extensions:
            encoder = extension.encoder(encoder)
        return encoder

    def can_reuse_epoch_itr(self, dataset: FairseqDataset) -> bool:
        """No: every epoch makes its own batches, from the seed and its number.

        Where fairseq uses its first batches again, a run resumed in a later epoch sees others than one never stopped.
        """
        return False

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """As fairseq's, which warns of samples that are left out.

        Args:
            max_positions: the largest size, a number, or one for the source and one for the target.

        Raises:
            DataError: a sample that is too long, unless `ignore_invalid_inputs`; none of a data set that is not.
        """
        fit, too_long = dataset.filter_indices_by_size(indices, max_positions)
        names = [name for name, loaded in self.datasets.items() if loaded is dataset]
        if self.training_split is not None and dataset is self.unchanged:
            names = [self.training_split]
        allowed = f"expected at most {_in_words(max_positions)} with </s>, as the model and --max-tokens allow"
        if len(too_long) > 0 and not ignore_invalid_inputs:
            first = min(too_long)
            place = f"sentence {first + 1} of the {names[0]} data" if names else "a sentence of the input"
            raise DataError(
                f"{place}: {allowed}, found {_in_words(dataset.size(first))} ({len(too_long):,} too long in all); "
                "shorten it, or leave out what is too long with --skip-invalid-size-inputs-valid-test"
            )
        if names and len(too_long) > 0 and len(fit) == 0:  # of typed input, none may be left: the next line may fit
            raise DataError(
                f"the {names[0]} data: {allowed}, found none of {len(too_long):,} sentences that short; raise the "
                "limit, or shorten them"
            )
        return super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)

    def is_training_data(self, split: str, combine: bool, train_subset: str) -> bool:
        """Whether `load_dataset` is asked for what training reads: only who trains combines the parts of this split.

        Raises:
            OptionError: this process is one of several, which would train each for itself.
        """
        training = combine and split == train_subset
        if training:
            if self.training_split is None:  # of several folders, every epoch loads one
                self.unchanged = self.datasets.get(split)
            self.training_split = split
            check_single_process()
        return training

    def get_batch_iterator(self, *args: Any, **options: Any) -> Any:  # the signature belongs to fairseq
        """As fairseq's; of what training reads, validation gets the data without what is changed for training.

        Raises:
            OptionError: --max-tokens that a sentence alone exceeds.
        """
        split = self.training_split
        of_training = split is not None and options.get("dataset") is self.datasets.get(split)
        if of_training and self.unchanged is not None and "grouped_shuffling" not in options:  # training says how to
            options["dataset"], of_training = self.unchanged, False
        try:
            batches = super().get_batch_iterator(*args, **options)
            # fairseq has a method of the iterator in the loader that the iterator keeps, with its workers. Freed from
            # such a cycle, it waits five seconds for each of them, and a worker that was forked later prints a trace.
            batches.ordered_batches = partial(type(batches).ordered_batches, weakref.proxy(batches))
            if options.get("num_workers"):  # fairseq's question for an option that is not there keeps its callers alive
                gc.collect()
            if of_training:
                self.batches_per_epoch = len(batches)
            return batches
        except AssertionError as error:
            if "max_tokens" not in str(error):
                raise
            raise OptionError(
                f"--max-tokens: expected room for the longest sentence, found a longer one ({error}); raise it"
            ) from None


def _in_words(size: Any) -> str:
    """A number of tokens, or that of the source and that of the target, if there is one."""
    if not isinstance(size, tuple):
        return f"{size:,} tokens"
    return f"{size[0]:,} tokens of source" + (f" and {size[1]:,} of target" if size[1] else "")
