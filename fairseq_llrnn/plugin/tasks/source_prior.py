"""The prior of the source's words, by which an encoder reads them (head/source_embedding.py)."""

from __future__ import annotations

import logging
import os

from fairseq.tasks.translation import TranslationTask

from fairseq_llrnn.head.source_embedding import OPTION, unused_parts
from fairseq_llrnn.plugin.compat.loading import data_folder
from fairseq_llrnn.plugin.models.frozen_lm import load_general_model
from fairseq_llrnn.prior.directory import check_symbols
from fairseq_llrnn.prior.manifest import REBUILD
from fairseq_llrnn.prior.prior import Prior

logger = logging.getLogger(__name__)


def load_source_prior(folder: str, task: TranslationTask) -> Prior:
    """Read it, and say what of it is not used.

    Raises:
        PriorError: none there, damaged, or made for another dictionary than the task's source has.
    """
    prior = Prior.load(folder, load_general_model)
    where = os.path.join(data_folder(task.cfg.data), f"dict.{task.cfg.source_lang}.txt")
    problem = f"{OPTION} {folder}: it was made for another dictionary than {where}"
    check_symbols(task.source_dictionary.symbols, prior.symbols, problem, f"{REBUILD} --dict {where}")
    logger.info(
        f"{OPTION} {folder}: the encoder reads {prior.input.features.num_features:,} features; not used: "
        f"{', '.join(unused_parts(prior))}"
    )
    return prior
