"""Shorten the output of fairseq's commands: one line per epoch, results, warnings.

fairseq logs everything with Python's logging, numbers included (`epoch 001 | valid on 'valid' subset | loss 5.11 | ppl
34.53 | …`). A handler that replaces its own selects and shortens the records. A progress bar on a terminal stays, with
fewer numbers. The output of --log-format json is unchanged. fairseq prints hypotheses without logging.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq.logging import progress_bar
from fairseq.utils import reset_logging
from tqdm import tqdm

from fairseq_llrnn.plugin.compat.checkpoint_errors import LAST
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced

FORMAT = logging.Formatter("%(asctime)s | %(levelname)s | %(name)s | %(message)s", "%Y-%m-%d %H:%M:%S")  # fairseq's
ON_BAR = ("loss", "ppl", "wps")
# beginnings of further log messages to print, by command
SHOWN = {
    "train": "early stop|[Ss]topping training",
    "eval-lm": r"Evaluated |Loss |skipping |\d+ .*\[|[^\t]+\t",  # the last two: of --output-word-probs and -stats
    "interactive": "Type " if sys.stdin is not None and sys.stdin.isatty() else "(?!)",
}
INNER = re.compile(r"epoch 0*(\d+): +(\d+) / (\d+) (.*)")
LOADED = re.compile(r"Loaded checkpoint (.*) \(epoch \d+ @ (\d+) updates\)")
SAVED = re.compile(r"Saved checkpoint .* \(epoch (\d+) @ (\d+) updates")


@dataclass
class Report:
    """Turn the log of a training into a few lines.

    Attributes:
        metric: metric that chooses the best checkpoint.
        opening: line to print once the arguments are parsed.
        next: command to type after the training (empty: none).
        last: epoch and update of the newest checkpoint (None: there is none yet).
        is_resumed: whether the training resumed from its own checkpoint and has saved none since.
        subset: name of the text whose validation chooses the best checkpoint.
        valid: text about the last validation of this epoch.
        better: epoch and numbers of the best validation so far, all finite.
        is_better: whether the last validation is the best, and no checkpoint was saved since.
        diverged: text about the last validation, or the last epoch without one, if no validation of this run was
            finite.
        is_finite: whether a validation of this run was finite.
        saved: epoch and numbers of this run's newest checkpoint_best.pt. A validation without a checkpoint chooses
            none.
    """

    save_dir: Path
    metric: str
    opening: str
    next: str
    last: str | None = None
    is_resumed: bool = False
    epoch: int = 0
    subset: str = ""
    began: float = field(default_factory=time.monotonic)
    valid: str = ""
    better: tuple[int, dict[str, str]] | None = None
    is_better: bool = False
    diverged: str = ""
    is_finite: bool = False
    saved: tuple[int, dict[str, str]] | None = None
    saves: bool = False
    loaded: str = ""  # checkpoint of another folder

    @property
    def best(self) -> tuple[int, dict[str, str]] | None:
        """Return the best validation of this run, or that of its checkpoint_best.pt if it saves checkpoints."""
        return self.saved if self.saves else self.better

    def line(self, record: logging.LogRecord, message: str) -> str | None:
        """Return the line to print for a log record, or None for nothing."""
        if self.opening and record.name == "fairseq_cli.train":  # fairseq first logs all options
            opening, self.opening = self.opening, ""
            return opening
        if loaded := LOADED.fullmatch(message):
            path, updates = loaded.groups()
            if Path(path).parent != self.save_dir:
                self.loaded = path
                return f"initial weights: {path}"
            self.last, self.is_resumed = f"update {updates}", True
            return f"resumes from {path}, update {updates}; to start from scratch, use another --save-dir"
        if saved := SAVED.match(message):
            self.last, self.is_resumed, self.saves = f"epoch {saved[1]}, update {saved[2]}", False, True
            self.saved, self.is_better = self.better if self.is_better else self.saved, False
        if record.filename != "progress_bar.py":
            return None
        if inner := INNER.fullmatch(message):
            stats = dict(part.split("=", 1) for part in inner[4].split(", "))
            return f"epoch {inner[1]}: batch {inner[2]} of {inner[3]}, {_of_text(stats)}"
        stats = numbers(message)
        if record.name == "train" and " | valid on " not in message:  # no validation on train (--valid-subset)
            return self._epoch(stats)
        self.subset = self.subset or record.name
        if record.name != self.subset:
            return f"epoch {int(stats['epoch'])}: {record.name} {_of_text(stats)}"
        before, self.valid = self.valid, self._valid(stats)
        return f"epoch {int(stats['epoch'])}: {before}" if before else None

    def _epoch(self, stats: dict[str, str]) -> str:
        self.epoch, valid = int(stats["epoch"]), self.valid and f", {self.valid}"
        began, self.began, self.valid = self.began, time.monotonic(), ""
        if not self.subset:  # no validation
            self.diverged = "" if math.isfinite(float(stats["loss"])) else f"train {_of_text(stats)}"
        return f"epoch {self.epoch}: train loss {stats['loss']}{valid}, {self.began - began:.0f} s"

    def _valid(self, stats: dict[str, str]) -> str:
        value = stats.get(self.metric, "none")  # fairseq raises the error
        best_value = stats.get(f"best_{self.metric}", value)
        values = [float(stats[name]) for name in {"loss", "ppl", self.metric} & stats.keys()]
        is_finite = all(map(math.isfinite, values))
        self.is_better = is_finite and value == best_value
        if not is_finite:
            best = "not finite"
        elif self.is_better:
            is_tie = self.better is not None and self.better[1].get(self.metric) == value
            best = f"same as in epoch {self.better[0]}" if self.better and is_tie else "best so far"
            self.better = int(stats["epoch"]), stats
        else:
            best = f"best {best_value}" + (f" in epoch {self.best[0]}" if self.best is not None else "")
        self.is_finite |= is_finite
        self.diverged = "" if self.is_finite else f"{self.subset} {_of_text(stats)}"
        metric_text = "" if self.metric == "loss" else f", {self.metric} {value}"
        return f"{self.subset} {_of_text(stats)}{metric_text} ({best})"

    def stopped(self) -> str:
        """Return the line to print if the user, or the machine, stops the training."""
        path = self.save_dir / LAST
        if not os.path.isfile(path):
            advice = "--save-interval-updates N saves more often"
            return f"stopped before the first checkpoint; the same command starts from scratch ({advice})"
        return f"stopped; the same command resumes from {path}" + (f" ({self.last})" if self.last else "")

    def end(self, verbose: bool = False) -> int:
        """Print the results and the next command, unless `verbose`, in which case fairseq prints its own.

        Of several processes, only the first one has results.

        Returns:
            The exit status: 1 if there were validations and none was finite.
        """
        if self.diverged:
            print(
                f"llrnn train: error: no {'validation ' if self.subset else ''}loss is finite ({self.diverged}): the "
                "training diverges; use a smaller --lr and another --save-dir, because the same one "
                "resumes from these weights",
                file=sys.stderr,
            )
            return 1
        if verbose:
            return 0
        path = self.save_dir / "checkpoint_best.pt"
        rows: list[tuple[str, str]] = []
        if self.best is not None:
            epoch, stats = self.best
            rows += [
                ("best epoch", f"{epoch} of {self.epoch}"),
                (self.subset, f"{_of_text(stats)} (a loss is in bits)"),
            ]
        elif self.epoch:
            rows.append(("best epoch", "in an earlier run, or there was no validation"))
        elif self.is_resumed:
            rows.append(("done", "the training had already ended; to continue, use a larger --max-epoch or --patience"))
        elif self.loaded:
            rows.append(("done", f"{self.loaded} has ended; train its weights further with --finetune-from-model"))
        if self.last is not None and os.path.isfile(path):
            rows += [("checkpoint", str(path)), ("next", self.next)]
        for title, text in rows:
            if text:
                print(f"{title:<11} {text}")
        return 0


def _of_text(stats: dict[str, str]) -> str:
    perplexity = f", perplexity {stats['ppl']}" if "ppl" in stats else ""
    return f"loss {stats.get('loss', '?')}{perplexity}"


def numbers(message: str) -> dict[str, str]:
    """Parse `epoch 001 | valid on 'valid' subset | loss 5.11 | ppl 34.53` into names and values."""
    pairs = (part.strip().rpartition(" ") for part in message.split("|"))
    return {name: value for name, _, value in pairs if re.fullmatch(r"[-+.\de]+|nan|-?inf", value)}


class Lines(logging.Handler):
    """Print results and progress from a command's log on stdout, or on stderr if stdout has hypotheses.

    If `silent`, it only fills the report.
    """

    def __init__(self, command: str, report: Report | None, silent: bool = False) -> None:
        super().__init__()
        self.silent = silent
        self.report, self.shown = report, re.compile(SHOWN.get(command, "(?!)"))
        self.command, self.searches = command, command in ("generate", "interactive")

    def emit(self, record: logging.LogRecord) -> None:
        line = self.line(record)
        if line is not None and not self.silent:
            on_stderr = self.searches or record.levelno > logging.INFO
            tqdm.write(line, file=sys.stderr if on_stderr else sys.stdout)
            (sys.stderr if on_stderr else sys.stdout).flush()

    def line(self, record: logging.LogRecord) -> str | None:
        """Return the line to print for a record, or None for nothing."""
        message = record.getMessage()
        if record.levelno > logging.INFO:
            return f"{record.levelname.lower()}: {' '.join(message.split())}"
        if record.filename == "progress_bar.py" and message.startswith("{"):  # --log-format json
            return FORMAT.format(record)
        if record.name.startswith("fairseq_llrnn"):
            return message
        if record.name.startswith("fairseq_cli") and self.shown.match(message):
            return message
        if self.report is not None:
            return self.report.line(record, message)
        if self.command == "validate" and record.filename == "progress_bar.py" and "=" not in message:
            return f"{record.name}: {', '.join(map(' '.join, numbers(message).items()))}"
        return None


@contextmanager
def output_of(command: str, verbose: bool, report: Report | None) -> Iterator[None]:
    """Shorten the output of a command of fairseq inside the block. If `verbose`, print all of it."""
    handlers, level = logging.root.handlers[:], logging.root.level
    try:
        if verbose:
            reset_logging()
            logging.root.addHandler(Lines(command, report, silent=True))
            yield
            return
        logging.root.handlers[:] = [Lines(command, report)]
        logging.root.setLevel(logging.INFO)
        with ExitStack() as changed:
            changed.enter_context(warnings.catch_warnings())
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            changed.enter_context(replaced(progress_bar.TqdmProgressBar, "log", _with_few_numbers))
            if command == "validate":  # it sets up its log again
                module = importlib.import_module("fairseq_cli.validate")
                changed.enter_context(replaced(module, "reset_logging", lambda usual: lambda: None))
            yield
    finally:
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)


def _show_warning(message: Warning | str, category: type[Warning], filename: str, *_: Any) -> None:
    """Show warnings of fairseq only. Those of torch, hydra and omegaconf about old names are for programmers."""
    if category is UserWarning and "fairseq" in Path(filename).parts:
        logging.getLogger(filename).warning(str(message))


def _with_few_numbers(log: Callable[..., None]) -> Callable[..., None]:
    def wrapper(bar: Any, stats: dict[str, Any], tag: str | None = None, step: int | None = None) -> None:
        log(bar, {name: stats[name] for name in ON_BAR if name in stats}, tag, step)

    return wrapper
