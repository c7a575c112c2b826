"""Run fairseq's commands with default options for our models, and shorten their output.

Default options are inserted before the typed options, of which the last one is used. They are --user-dir, the task and
its text options, from the checkpoint or, in training, from the data folder, and options of every training.

A checkpoint is untrusted. It is read safely, and its options become single words `--option=value`, so that no value can
act as another option.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import multiprocessing
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from fairseq import utils
from fairseq.data import data_utils
from fairseq.data.indexed_dataset import infer_dataset_impl
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, FairseqLanguageModel
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.argument_errors import exit_with_argument_error
from fairseq_llrnn.defaults import SMALL_ARCH
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.command_lines import Report, output_of
from fairseq_llrnn.plugin.compat.checkpoint_errors import in_one_line
from fairseq_llrnn.plugin.compat.data_files import check_sentences
from fairseq_llrnn.plugin.compat.loading import checkpoint_file, prior_folder, prior_of_state, read_checkpoint
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced
from fairseq_llrnn.plugin.compat.user_errors import leave_if_others_run, values_of, what_users_did
from fairseq_llrnn.plugin.data.unknown_words import report_written
from fairseq_llrnn.plugin.kinds import KINDS, LIMITS, SMALL_TEXT
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS
from fairseq_llrnn.plugin.names import find_task, name_of
from fairseq_llrnn.plugin.scoring.eval_lm_words import words_of_eval_lm
from fairseq_llrnn.plugin.tasks.task import PluginTask
from fairseq_llrnn.prior.directory import JSON_FILE, read_description

logger = logging.getLogger(__name__)
BLOCKS = {
    "eval-lm": "each sentence is scored alone, as in llrnn score; add --sample-break-mode to score blocks",
    "validate": "blocks that begin inside a sentence lack context, so that the loss differs from that of llrnn score; "
    "add --sample-break-mode eos to score each sentence alone",
}
LANGUAGE_MODEL = "--task=llrnn_language_modeling"
GRACE = 2  # seconds until an interrupted process of another GPU is killed
ANY_SIZE = "--required-batch-size-multiple=1"  # by default fairseq drops a last batch that is no multiple of 8
BATCHES = ("--max-tokens 2048", "--batch-size", "--max-sentences")


TRAINING = (
    ("--criterion log_linear",),
    ("--optimizer adam --lr 0.002 --clip-norm 1.0",),
    BATCHES,
    ("--max-epoch 30", "--patience", *LIMITS),
    ("--patience 3", *LIMITS),
    ("--no-epoch-checkpoints", "--no-save", "--save-interval", "--keep-last-epochs", "--keep-best-checkpoints"),
)
SAVED_OFTEN = ("--keep-interval-updates 3",)  # with --save-interval-updates; fairseq keeps all


def run(name: str, arguments: Sequence[str], user_dir: str) -> int:
    """Run fairseq's command `name` and return its exit status, 2 for an error that the user can fix."""
    words = _with_files(name, [word for word in arguments if word != "-v"])
    verbose, shows_help = "-v" in arguments, bool({"-h", "--help", "--help-all"} & set(words))
    command = importlib.import_module(f"fairseq_cli.{name.replace('-', '_')}")
    for logger in ("fairseq", "fairseq_cli", "fairseq_llrnn.plugin"):  # silenced by need_fairseq
        logging.getLogger(logger).setLevel(logging.NOTSET)
    before, report = sys.argv, None
    sys.argv = [f"llrnn {name}", *words]
    try:
        more = ["--help"] if shows_help else added(name, words, user_dir)
        sys.argv[1:1] = more
        if name == "train":
            save_dir = Path(_value_of(words, "--save-dir") or "checkpoints")
            opening = f"options added before yours: {' '.join(more)}{_on_small_texts(more)}"
            metric = _value_of(words, "--best-checkpoint-metric") or "loss"
            report = Report(save_dir, metric, opening, _next([*more, *words], save_dir / "checkpoint_best.pt"))
        with (
            replaced(
                argparse.ArgumentParser,
                "error",
                lambda usual: lambda parser, message: exit_with_argument_error(
                    parser, words, message, lambda choice: _is_for_text(choice) in (None, LANGUAGE_MODEL in more)
                ),
            ),
            output_of(name, verbose, report),
            words_of_eval_lm(_data(words)) if name == "eval-lm" else nullcontext(),
        ):
            command.cli_main()
            if name == "generate":
                report_written()
    except KeyboardInterrupt as stop:  # SIGTERM and SIGHUP, too (cli/main.py)
        others = [process for process in multiprocessing.active_children() if not process.daemon]  # of other GPUs
        for process in others:
            process.terminate()
        for process in others:  # Python would wait for each; a signal during a process's start is lost
            process.join(GRACE)
            process.kill()
        status = 128 + (stop.args[0] if stop.args else signal.SIGINT)
        print(f"llrnn {name}: {report.stopped() if report else 'interrupted'}", file=sys.stderr)
        leave_if_others_run(status)
        return status
    except Exception as error:
        mistake = what_users_did(error) or (None if verbose else _said_by_fairseq(error))
        if mistake is None:
            raise
        print(f"llrnn {name}: error: {mistake}", file=sys.stderr)
        leave_if_others_run(2)
        return 2
    finally:
        sys.argv = before
    return 0 if report is None else report.end(verbose)


def _is_for_text(arch: str) -> bool | None:
    """Return whether an --arch is of a language model, or None for another word."""
    model = ARCH_MODEL_REGISTRY.get(arch)
    return None if model is None else issubclass(model, FairseqLanguageModel)


def _said_by_fairseq(error: Exception) -> str | None:
    """Return the message for an exception of fairseq or of a library that it calls, or None for one of this package."""
    frames = traceback.walk_tb(error.__traceback__)
    calls = [(frame.f_globals["__name__"].partition(".")[0], frame.f_code.co_filename, line) for frame, line in frames]
    package, file, line = [call for call in calls if call[0].startswith("fairseq")][-1]
    if package == "fairseq_llrnn" or isinstance(error, OSError):  # an OSError may be of stdout
        return None
    place = f"{os.path.basename(file)}, line {line}"
    return f"fairseq failed in {place}, with {in_one_line(error)}; check the options (-v prints the trace)"


def added(name: str, arguments: Sequence[str], user_dir: str) -> list[str]:
    """Return the options to insert before the arguments of a command.

    Raises:
        OptionError: neither data nor --task determine the task, the model does not support the command, or --path
            has several checkpoints where one is measured.
        DataError: the checkpoint is not of one of our tasks, or as `read_checkpoint`.
    """
    prepended = [f"--user-dir={user_dir}"]
    task, path, data = _value_of(arguments, "--task"), _value_of(arguments, "--path"), _data(arguments)
    if task is not None and not _is_ours(task):
        return prepended
    prepended.append(ANY_SIZE)
    wrong, right = ("--gen-subset", "--valid-subset")[:: 1 if name == "validate" else -1]
    if name != "train" and _value_of(arguments, wrong) is not None:
        raise OptionError(f"{wrong}: expected {right} with llrnn {name}, which chooses the data set; replace it")
    if name in ("eval-lm", "validate") and len(utils.split_paths(path or "")) > 1:
        raise OptionError(f"--path {path}: expected one checkpoint, found several; run the command for each of them")
    if name != "train" and path:
        prepended += _of_checkpoint(name, utils.split_paths(path)[0], arguments, data)
    else:
        if task is None:
            task = _task_of(data or _check_no_data(arguments), _value_of(arguments, "--prior"))
        prepended.append(f"--task={task}")
    kind = KINDS.get(task or "")
    if name == "train" and kind is not None:
        small = _defaults(arguments, kind.small) if kind.small and _is_small(arguments, data) else []
        saving = () if _value_of(arguments, "--save-interval-updates") is None else (SAVED_OFTEN,)
        options = (f"--arch {kind.arch}", "-a"), *kind.training, *TRAINING, *saving
        prepended += _defaults([*small, *arguments], options) + small
    return prepended + (_defaults(arguments, (BATCHES,)) if name == "validate" else [])


def _is_small(arguments: Sequence[str], data: str | None) -> bool:
    """Return whether a training has a small text, and no option of the user chooses the network."""
    options = ("--arch", "-a", *(_option(name) for name in vars(_small_network())))
    if data is None or any(_value_of(arguments, option) is not None for option in options):
        return False
    return 0 < _count_words(data) < SMALL_TEXT


def _small_network() -> argparse.Namespace:
    """Return the options of the network for small texts."""
    network = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[SMALL_ARCH](network)
    return network


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _on_small_texts(more: Sequence[str]) -> str:
    """Return lines on the network for small texts, if the added options choose it."""
    if SMALL_ARCH not in more:
        return ""
    values = vars(_small_network()).items()
    shown = " ".join(_option(name) if value is True else f"{_option(name)} {value}" for name, value in values)
    return (
        f"\nfewer than {SMALL_TEXT:,} words of text: --arch {SMALL_ARCH} means --arch llrnn_lm {shown}"
        "\n(for the options of larger texts, add --arch llrnn_lm)"
    )


def _count_words(data: str) -> int:
    """Count the words of the training text of a data folder, without sentence ends, or 0 if it has no binary text.

    Raises DataError if it is empty.
    """
    path = os.path.join(utils.split_paths(data)[0], "train")
    check_sentences(path)
    if infer_dataset_impl(path) in (None, "raw"):
        return 0
    text = data_utils.load_indexed_dataset(path)
    return int(np.sum(text.sizes)) - len(text)


def _with_files(name: str, arguments: Sequence[str]) -> list[str]:
    """Replace each exported folder in --path by its checkpoint.

    `llrnn interactive` reads the dictionaries of an exported folder if there is no data folder.
    """
    words, folders = list(arguments), list[str]()
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option == "--path" and (equals or place + 1 < len(words)):
            paths = utils.split_paths(value if equals else words[place + 1])
            files = os.pathsep.join(map(checkpoint_file, paths))
            words[place if equals else place + 1] = f"--path={files}" if equals else files
            folders = [path for path in paths if os.path.isdir(path)]
    return [*folders[:1], *words] if name == "interactive" and _data(words) is None else words


def _value_of(arguments: Sequence[str], *names: str) -> str | None:
    """Return the last value of an option, or None if it is absent."""
    return next((value for _, value in reversed([*values_of(arguments, names)])), None)


def _defaults(arguments: Sequence[str], options: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the options that are absent from the arguments, or have their default. Each has a list of further options
    that replace it.
    """
    defaults: list[str] = []
    for words, *others in options:
        first, *values = words.split()
        if _value_of(arguments, first) in (None, *values[:1]) and _value_of(arguments, *others) is None:
            defaults += words.split()
    return defaults


def _data(arguments: Sequence[str]) -> str | None:
    """Return the data folders: the first argument that is a folder with dictionaries, which the folder of a prior
    lacks.
    """
    for word in arguments:
        folder = utils.split_paths(word)[0] if word else ""
        if os.path.isdir(folder) and any(name.startswith("dict.") for name in os.listdir(folder)):
            return word
    return None


def _is_ours(task: str) -> bool:
    kind = find_task(task)
    return kind is None or issubclass(kind, PluginTask)  # for None, fairseq raises the error


def _check_no_data(arguments: Sequence[str]) -> NoReturn:
    """Raise OptionError: no argument is a data folder. The message is about the first argument."""
    expected = "expected DATA, a folder of fairseq-preprocess (with dict.txt, or two of dict.LANGUAGE.txt), found"
    first = next(iter(arguments), "-")
    if first.startswith("-"):
        raise OptionError(f"{expected} none among the arguments; add it")
    place = utils.split_paths(first)[0]
    if os.path.isfile(place):
        raise OptionError(
            f"{first}: {expected} a file; convert the text with fairseq-preprocess, and pass its --destdir"
        )
    found = "a folder without dictionaries" if os.path.isdir(place) else "no such folder"
    raise OptionError(f"{first}: {expected} {found}; check the path, or run fairseq-preprocess first")


def _task_of(data: str, prior: str | None) -> str:
    """Return the task for a data folder and its prior. Raises PriorError if the prior is damaged."""
    settings = _settings_of(data, prior)
    for task, kind in KINDS.items():
        if kind.of_setting is not None and settings.get(kind.of_setting):
            return task
    has_one_dictionary = os.path.isfile(Path(utils.split_paths(data)[0]) / "dict.txt")
    return "llrnn_language_modeling" if has_one_dictionary else "llrnn_translation"


def _settings_of(data: str, prior: str | None) -> dict[str, Any]:
    """Return the settings of a prior, or none without it. Raises PriorError if it is damaged."""
    folder = Path(prior_folder(prior, data))
    settings = read_description(folder).get("settings") if os.path.isfile(folder / JSON_FILE) else None
    return settings if isinstance(settings, dict) else {}


def _of_checkpoint(name: str, path: str, arguments: Sequence[str], data: str | None) -> list[str]:
    """Return options from a checkpoint: its task, its text options and its prior. Raises as `added`."""
    state = read_checkpoint(path)
    task = name_of(state["cfg"], "task")
    if find_task(task) is None or not _is_ours(task):
        raise DataError(
            f"{path}: expected a model of {', '.join(KINDS)}, found one of {task[:80]!r}; use fairseq-{name}, or add "
            "--task",
            path,
        )
    kind = KINDS.get(task)
    if kind is not None and name in kind.refused:
        use = kind.refused[name]
        raise OptionError(f"{path}: expected a model for llrnn {name}, found one of {task}; use {use}", path)
    prepended = [f"--task={task}"]
    try:
        options = state["cfg"]["task"]
        of_extensions = (extension.recorded.get(task, ()) for extension in EXTENSIONS)
        for option in chain(() if kind is None else kind.recorded, *of_extensions):
            value: Any = getattr(options, option, None)
            if value is not None and value is not False:
                prepended.append(_option(option) if value is True else f"{_option(option)}={value}")
        if name in ("generate", "eval-lm") and kind is not None:
            prepended += _defaults(arguments, kind.search if name == "generate" else kind.evaluation)
        mode = getattr(options, "sample_break_mode", None)
        is_default = _value_of(arguments, "--sample-break-mode") is None
        if name in BLOCKS and is_default and mode in ("none", "complete", "complete_doc"):
            logger.warning(f"{path} was trained in blocks of text (--sample-break-mode {mode}): {BLOCKS[name]}")
        if hasattr(options, "prior") and _value_of(arguments, "--prior") is None:
            prepended.append(f"--prior={prior_of_state(path, state, data or '')}")
    except OmegaConfBaseException as error:
        raise DataError(f"{path}: its options are damaged ({error}); use another checkpoint") from None
    return prepended


def _next(arguments: Sequence[str], checkpoint: Path) -> str:
    """Return the command to type after a training, or empty if the task is not ours or has none."""
    data, task = _data(arguments), _value_of(arguments, "--task") or ""
    if data is None or task not in KINDS:
        return ""
    path = shlex.quote(str(checkpoint))
    if f"--task={task}" == LANGUAGE_MODEL and "open_floor" in _settings_of(data, _value_of(arguments, "--prior")):
        return f"llrnn score --path {path} --open TEXT"
    has_test = any(name.startswith("test.") for name in os.listdir(utils.split_paths(data)[0]))
    return KINDS[task].next.format(data=shlex.quote(data), path=path, subset="test" if has_test else "valid")
