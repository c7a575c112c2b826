"""Where the source prior of a checkpoint is: given by the user, where the training had it, or near the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.compat.data_folders import data_folder
from fairseq_llrnn.plugin.compat.moved_folders import (
    Search,
    is_prior,
    places_of,
    priors_in,
    save_dir_of,
    say_found,
    search,
    source_fingerprint_in,
)
from fairseq_llrnn.source_embedding import OPTION


def take_source_prior(
    path: str, task: Any, given: str | None, option: str, state: Mapping[str, Any] | None, data: str
) -> None:
    """Put the place of the source's prior into the options of a checkpoint's task, if its encoder reads by one.

    Args:
        given: the place that the user gave as `option`. state: of `read_checkpoint`; None: nothing is looked for.
        data: the folder of its data, as it is now.

    Raises:
        OptionError: it is nowhere; or one is given for a model that reads none.
    """
    recorded = getattr(task, "source_prior", None)
    if recorded is None:
        if given is not None:
            raise OptionError(
                f"{option} {given}: expected a model that was trained with a source prior, found {path}, which was "
                f"not; leave {option} out"
            )
    elif given is not None:
        task.source_prior = given
    else:
        recorded = str(recorded)
        found = _find(path, state, recorded, data)
        if found.found is None:
            raise OptionError(
                f"{path} was trained with the source prior {recorded!r}, but there is none seen from here"
                f"{found.nor_in(recorded)}; give its folder with {option} DIR"
            )
        say_found(path, "source prior", recorded, found.found)
        task.source_prior = str(found.found)


def source_prior_of_model(path: str, state: Mapping[str, Any], data: str) -> str | None:
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
    take_source_prior(path, task, None, OPTION, state, data)
    return str(task.source_prior)


def _find(path: str, state: Mapping[str, Any] | None, recorded: str, data: str) -> Search:
    if state is None:
        return search([Path(recorded)], is_prior(None))
    around = places_of(recorded, save_dir_of(state), path)
    return search(chain(around, priors_in(data_folder(data))), is_prior(source_fingerprint_in(state, path)))
