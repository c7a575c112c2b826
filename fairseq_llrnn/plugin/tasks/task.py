"""The base of all our tasks, with a prior or without: check the options, and resume exactly."""

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
    training_split: str | None = None  # name of the training split, once it is loaded
    unchanged: FairseqDataset | None = None  # that split without changes for training, if --valid-subset reads it
    batches_per_epoch = 0  # of the training split, for this process
    progress: dict[str, Any] | None = None  # of the training, as in the newest checkpoint (compat/resuming.py)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add the task's options. fairseq calls it if a command line names the task."""
        super().add_args(parser)
        enter_command()
        check_when_parsed(parser)

    @property
    def options(self) -> Any:
        """The task's options, wherever fairseq's class keeps them."""
        return getattr(self, "args", self.cfg)

    @property
    def folders(self) -> int:
        """The number of data folders. Each epoch reads one, in turn."""
        return len(utils.split_paths(self.options.data))

    def extend(self, name: str, from_checkpoint: bool) -> None:
        """Create the extensions of the task with that name."""
        opened = (kind.task_extension(self, from_checkpoint) for kind in EXTENSIONS if name in kind.options)
        self.extensions = tuple(extension for extension in opened if extension is not None)

    def extended(
        self, data: FairseqDataset, split: str, epoch: int, training: bool, read: Callable[..., None]
    ) -> FairseqDataset:
        """Return a data set, changed by extensions.

        Args:
            data: the data set that the task would pass to the model.
            read: fairseq's `load_dataset`, which puts the data of an epoch into `datasets`, and has done so.
        """
        current = self.datasets[split]

        def first() -> FairseqDataset:
            if (epoch - 1) % self.folders:  # the epoch reads another folder
                read(split, 1, True)
            first_data, self.datasets[split] = self.datasets[split], current
            return first_data

        for extension in self.extensions:
            data = extension.changed_data(data, training, first)
        return data

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """Return the entry that fairseq adds to a checkpoint. It restores the entry with the name of the class."""
        return {type(self).__name__: self.progress or {}}

    def set_checkpoint_dict(self, progress: dict[str, Any]) -> None:
        """Restore the entry of `get_checkpoint_dict` from a checkpoint."""
        self.progress = progress

    def build_tokenizer(self, args: Any) -> Any:
        """Build a tokenizer like fairseq, changed by extensions."""
        return self._encoder(super().build_tokenizer(args))

    def build_bpe(self, args: Any) -> Any:
        """Build a BPE like fairseq, changed by extensions."""
        return self._encoder(super().build_bpe(args))

    def _encoder(self, encoder: Any) -> Any:
        for extension in self.extensions:
            encoder = extension.encoder(encoder)
        return encoder

    def can_reuse_epoch_itr(self, dataset: FairseqDataset) -> bool:
        """Return False: every epoch makes its own batches, from the seed and its number.

        If fairseq reuses its first batches, a run that resumes in a later epoch sees other batches than an
        uninterrupted one.
        """
        return False

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: FairseqDataset,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """Filter samples like fairseq, which warns about those that are left out.

        Args:
            max_positions: the largest size, as a number, or as one for the source and one for the target.

        Raises:
            DataError: a sample is too long, unless `ignore_invalid_inputs`, or all samples of a data set are.
        """
        fit, too_long = dataset.filter_indices_by_size(indices, max_positions)
        names = [name for name, loaded in self.datasets.items() if loaded is dataset]
        if self.training_split is not None and dataset is self.unchanged:
            names = [self.training_split]
        allowed = f"expected at most {_in_words(max_positions)} with </s> (limit of the model and --max-tokens)"
        if len(too_long) > 0 and not ignore_invalid_inputs:
            first = min(too_long)
            place = f"sentence {first + 1} of the {names[0]} data" if names else "a sentence of the input"
            raise DataError(
                f"{place}: {allowed}, found {_in_words(dataset.size(first))} ({len(too_long):,} too long in all); "
                "shorten it, or skip long sentences with --skip-invalid-size-inputs-valid-test"
            )
        if names and len(too_long) > 0 and len(fit) == 0:  # not for typed input, whose next line may fit
            raise DataError(
                f"the {names[0]} data: {allowed}, found none of {len(too_long):,} sentences that short; raise the "
                "limit, or shorten them"
            )
        return super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)

    def is_training_data(self, split: str, combine: bool, train_subset: str) -> bool:
        """Return whether `load_dataset` loads the training data. Only a training combines the parts of this split.

        Raises:
            OptionError: this process is one of several without a connection to the others.
        """
        training = combine and split == train_subset
        if training:
            if self.training_split is None:  # with several folders, every epoch loads one
                self.unchanged = self.datasets.get(split)
            self.training_split = split
            check_single_process()
        return training

    def get_batch_iterator(self, *args: Any, **options: Any) -> Any:  # the signature belongs to fairseq
        """Return batches like fairseq. Validation on the training split gets it without the changes for training.

        Raises:
            OptionError: a single sentence exceeds --max-tokens.
        """
        split = self.training_split
        of_training = split is not None and options.get("dataset") is self.datasets.get(split)
        if of_training and self.unchanged is not None and "grouped_shuffling" not in options:  # set by training only
            options["dataset"], of_training = self.unchanged, False
        try:
            batches = super().get_batch_iterator(*args, **options)
            # The iterator keeps a loader with workers, which has a method of the iterator: a cycle. When the cycle is
            # freed, Python waits five seconds for each worker, and a worker that was forked later prints a trace.
            batches.ordered_batches = partial(type(batches).ordered_batches, weakref.proxy(batches))
            if options.get("num_workers"):  # fairseq's lookup of a missing option keeps its callers alive
                gc.collect()
            if of_training:
                self.batches_per_epoch = len(batches)
            return batches
        except AssertionError as error:
            if "max_tokens" not in str(error):
                raise
            raise OptionError(f"--max-tokens is smaller than the longest sentence ({error}); raise it") from None


def _in_words(size: Any) -> str:
    """Describe a number of tokens, or those of source and target."""
    if not isinstance(size, tuple):
        return f"{size:,} tokens"
    return f"{size[0]:,} tokens of source" + (f" and {size[1]:,} of target" if size[1] else "")
