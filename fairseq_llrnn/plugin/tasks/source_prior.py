"""The source side of our tasks: the prior with which an encoder reads words, and unknown source words.

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
    source_prior: Prior | None = None  # for the encoder of the next model that is built

    def read_source_prior(self, folder: str | None) -> None:
        """Load the prior in this folder, if any, for the models that are built from now on.

        Raises:
            PriorError: it is missing, damaged, or made for another dictionary than the source's.
        """
        path = os.path.join(data_folder(self.cfg.data), f"dict.{self.cfg.source_lang}.txt")
        self.source_prior = load_source_prior(folder, self.source_dictionary, path)

    def keep_unknown_source_words(self) -> None:
        """Keep the strings of source words outside the dictionary in typed and raw text.

        If the prior has strings of the source, these are kept as far as the prior has ids for them.
        """
        if not self.prior.has_source_strings:
            self.src_dict = OpenDictionary(self.source_dictionary, self.source_words)

    @cached_property
    def source_words(self) -> OpenWords:
        """The source's words, and the strings outside an open source dictionary seen so far."""
        if self.prior.has_source_strings:
            return self.prior.session.source
        return OpenWords(self.source_dictionary.symbols)

    def take_source_prior(self, path: str, state: Mapping[str, Any]) -> None:
        """Load the source prior of a checkpoint's training before its model is built.

        A prior that the command names is used instead. Weights reject a wrong one. Models of an ensemble may differ.

        Args:
            path, state: the checkpoint.

        Raises:
            OptionError: it is not found. PriorError: damaged, or made for another dictionary.
        """
        if self.cfg.source_prior is not None:
            return
        folder = source_prior_of_model(path, state)
        if self.source_prior is None or self.source_prior.folder != folder:
            self.read_source_prior(folder)


def load_source_prior(folder: str | None, dictionary: Dictionary, path: str | Path) -> Prior | None:
    """Load the source prior, and log the parts of it that are not used, or None without a folder.

    Args:
        dictionary: the dictionary that the prior must be made for.
        path: the path of the dictionary.

    Raises:
        PriorError: it is missing, damaged, or made for another dictionary.
    """
    if folder is None:
        return None
    prior = Prior.load(folder, load_general_model)
    problem = f"{OPTION} {folder}: it was made for another dictionary than {path}"
    check_symbols(dictionary.symbols, prior.symbols, problem, f"{REBUILD} --dict {path}")
    logger.info(
        f"{OPTION} {folder}: the encoder reads {prior.input.features.num_features:,} features; not used: "
        f"{', '.join(unused_parts(prior))}"
    )
    return prior
