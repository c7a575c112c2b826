"""Write a trained model to one folder, with all files that a command needs to use it: `llrnn export`.

    model.pt            the checkpoint without the state of the optimizer
    dict.txt, …         its dictionaries
    prior/              its prior
    source-prior/       the prior of the source words, if its encoder uses one
    training-words.txt  the words of a language model's training text, one per line, if the text was found

The options in model.pt record the folder itself as data folder and --save-dir, so that the folder can be moved.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evaluation.training_words import TRAINING_WORDS, training_words
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.files.atomic_write import may_replace, whole_folder, writing
from fairseq_llrnn.plugin.compat.loading import EXPORTED, RECORDED, Places, prior_folder, read_checkpoint, take_places
from fairseq_llrnn.plugin.compat.task_checkpoints import write_whole
from fairseq_llrnn.prior.directory import read_description

PRIOR, SOURCE_PRIOR = "prior", "source-prior"
ADVICE = "free some space, or choose another folder"
OMITTED = ("last_optimizer_state", "args")  # entries of a checkpoint that are not exported


def export(path: str, folder: Path, places: Places = RECORDED) -> None:
    """Write the model of a checkpoint to a folder.

    Args:
        folder: a new name, or an empty folder.
        places: present places of the checkpoint's data and priors.

    Raises:
        OptionError: a file, or a folder with files, has that name, or the data or a prior is not found.
        DataError: a damaged checkpoint, or a folder that cannot be written.
    """
    if not may_replace(folder, lambda _: False):
        kind = "an exported model" if (folder / EXPORTED).is_file() else "something else"
        raise OptionError(f"{folder}: expected a free name or an empty folder, found {kind}; remove it, or use another")
    state = read_checkpoint(path)
    task: Any = state["cfg"].task
    dictionaries = take_places(path, task, places, state)
    priors = {}
    if hasattr(task, "prior"):
        priors[PRIOR] = prior_folder(task.prior, str(task.data))
        task.prior = None  # found in the data folder
    if getattr(task, "source_prior", None) is not None:
        priors[SOURCE_PRIOR] = str(task.source_prior)
        task.source_prior = SOURCE_PRIOR
    if len(dictionaries) == 2:  # fairseq infers the languages from the names of texts, which the folder lacks
        task.source_lang, task.target_lang = (file.name.split(".")[1] for file in dictionaries)
    task.data = state["cfg"].checkpoint.save_dir = os.curdir
    with writing(folder, "model"), whole_folder(folder) as new:
        for file in dictionaries:
            shutil.copyfile(file, new / file.name)
        for name, prior in priors.items():
            shutil.copytree(prior, new / name)
        if len(dictionaries) == 1 and PRIOR in priors:  # it names the convention of pieces
            pieces = read_description(Path(priors[PRIOR]))["settings"].get("pieces")
            words = training_words(dictionaries[0], CONVENTIONS.get(pieces or ""))
            if words is not None:
                (new / TRAINING_WORDS).write_text("".join(f"{word}\n" for word in sorted(words)), encoding="utf-8")
        options = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
        exported = {key: value for key, value in state.items() if key not in OMITTED}
        write_whole(new / EXPORTED, lambda file: torch.save(exported | {"cfg": options}, file), ADVICE)
