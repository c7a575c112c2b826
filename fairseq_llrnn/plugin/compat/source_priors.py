"""Where the source prior of a checkpoint is: given by the user, or where the training had it (moved_folders.py)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.compat.moved_folders import (
    is_prior,
    places_of,
    report_moved,
    save_dir_of,
    search,
    source_fingerprint_in,
)
from fairseq_llrnn.source_embedding import OPTION


def take_source_prior(
    path: str, task: Any, folder: str | None, option: str, state: Mapping[str, Any] | None
) -> None:
    """Put the place of the source's prior into the options of a checkpoint's task, if its encoder reads by one.

    Args:
        folder: the place that the user gave as `option`.
        state: of `read_checkpoint`; None: nothing is looked for.

    Raises:
        OptionError: it is nowhere; or one is given for a model that reads none.
    """
    recorded = getattr(task, "source_prior", None)
    if recorded is None:
        if folder is not None:
            raise OptionError(
                f"{option} {folder}: expected a model that was trained with a source prior, found {path}, which was "
                f"not; leave {option} out"
            )
    elif folder is not None:
        task.source_prior = folder
    else:
        recorded = str(recorded)
        result = (
            search([Path(recorded)], is_prior(None))
            if state is None
            else search(places_of(recorded, save_dir_of(state), path), is_prior(source_fingerprint_in(state, path)))
        )
        if result.folder is None:
            raise OptionError(
                f"{path} was trained with the source prior {recorded!r}, but there is none seen from here"
                f"{result.nor_in(recorded)}; give its folder with {option} DIR"
            )
        report_moved(path, "source prior", recorded, result.folder)
        task.source_prior = str(result.folder)


def source_prior_of_model(path: str, state: Mapping[str, Any]) -> str | None:
    """The source prior that a checkpoint was trained with; None: it was not.

    Raises:
        OptionError: it is nowhere.
    """
    try:
        task: Any = state["cfg"].task
        recorded = task.source_prior
    except (AttributeError, TypeError, OmegaConfBaseException):  # options of another kind, or of before
        return None
    if recorded is None or not isinstance(state["model"], Mapping) or source_fingerprint_in(state, path) is None:
        return None
    take_source_prior(path, task, None, OPTION, state)
    return str(task.source_prior)
