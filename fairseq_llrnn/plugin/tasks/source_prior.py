"""What our tasks know of a source: the prior of its words, by which an encoder reads them, and its unknown words.

The prior is that of --source-prior (source_embedding.py).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary

from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.plugin.compat.dictionaries import OpenDictionary
from fairseq_llrnn.plugin.compat.moved_folders import TwoDictionaries, data_folder, source_prior_of_model
from fairseq_llrnn.plugin.models.frozen_lm import load_general_model
from fairseq_llrnn.prior.directory import REBUILD, check_symbols
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.source_embedding import OPTION, unused_parts

logger = logging.getLogger(__name__)


class SourceSide(TwoDictionaries):
    """A task with a source that an encoder reads by features, by characters, or from a table."""

    cfg: Any
    prior: Prior
    src_dict: Dictionary
    source_prior: Prior | None = None  # by which the encoder of the next model that is built reads

    def read_source_prior(self, folder: str | None) -> None:
        """Take the prior in this folder, if any, for the models that are built from here on.

        Raises:
            PriorError: none there, damaged, or made for another dictionary than the source has.
        """
        where = os.path.join(data_folder(self.cfg.data), f"dict.{self.cfg.source_lang}.txt")
        self.source_prior = load_source_prior(folder, self.source_dictionary, where)

    def keep_unknown_source_words(self) -> None:
        """From here on typed and raw text keep the strings of source words that the dictionary lacks.

        Where the prior brings strings of the source, they do, as far as it numbers them.
        """
        if not self.prior.has_source_strings:
            self.src_dict = OpenDictionary(self.source_dictionary, self.source_words)

    @cached_property
    def source_words(self) -> OpenWords:
        """The source's words and, where its dictionary is an open one, the strings that it lacks, as met so far."""
        if self.prior.has_source_strings:
            return self.prior.session.source  # which of them have an id, the prior says
        return OpenWords(self.source_dictionary.symbols)

    def take_source_prior(self, path: str, state: Mapping[str, Any]) -> None:
        """Before a checkpoint's model is built: its encoder reads by the source prior of its training.

        One that the command names is taken as it is: weights refuse another one. Models of an ensemble may differ.

        Args:
            path, state: the checkpoint.

        Raises:
            OptionError: it is nowhere. PriorError: damaged, or made for another dictionary.
        """
        if self.cfg.source_prior is not None:
            return
        folder = source_prior_of_model(path, state)
        if self.source_prior is None or self.source_prior.folder != folder:
            self.read_source_prior(folder)


def load_source_prior(folder: str | None, dictionary: Dictionary, where: str | Path) -> Prior | None:
    """Read it, and say what of it is not used; None without a folder.

    Args:
        dictionary: of the words that it has to be made for. where: its file.

    Raises:
        PriorError: none there, damaged, or made for another dictionary.
    """
    if folder is None:
        return None
    prior = Prior.load(folder, load_general_model)
    problem = f"{OPTION} {folder}: it was made for another dictionary than {where}"
    check_symbols(dictionary.symbols, prior.symbols, problem, f"{REBUILD} --dict {where}")
    logger.info(
        f"{OPTION} {folder}: the encoder reads {prior.input.features.num_features:,} features; not used: "
        f"{', '.join(unused_parts(prior))}"
    )
    return prior
