"""Train a field of words from files, with checkpoints, for `llrnn mrf train --text`.

Sizes: R kinds of tokens, K order.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.files.numbers import check_penalty
from fairseq_llrnn.files.reading import file_digest
from fairseq_llrnn.prior.prior import Prior
from llrnn_research.markov_field.pseudo_likelihood import windows

from .folder import TRAINING_FILE, check_free, read_training
from .lbfgs import KEPT
from .learning import METHODS, Learner, Plan, Progress
from .model import MarkovField
from .moments import count_moments, layout
from .objective import Objective
from .potentials import EXPLICIT, Form, memory_of_explicit
from .pseudo_likelihood import learn_by_pseudo_likelihood
from .star import MEMORY
from .vocabulary import FieldText, FieldWords, words_of_prior, words_of_text

BOUND, PSEUDO = "bound", "pseudo-likelihood"
SAVE_EVERY = 60.0  # seconds
Watch = Callable[[Progress], None]


@dataclass(frozen=True)
class FieldOptions:
    """Training options, with the names of the command line."""

    text: Sequence[str]
    valid: Sequence[str] = ()
    form: str = "uw"
    order: int = 2
    width: int = 30
    words: int = 2000
    prior: str | None = None
    objective: str = BOUND
    method: str = METHODS[0]
    penalty: float = 0.0
    iterations: int = 200
    seed: int = 1
    memory: int = MEMORY

    def check(self) -> None:
        """Raise OptionError for numbers out of range."""
        check_least("--iterations", self.iterations, 1)
        check_penalty("--penalty", self.penalty)
        if not 0 <= self.seed < 2**63:  # torch's range
            raise OptionError(f"--seed {self.seed}: expected a number from 0 to {2**63 - 1:,}")

    def identity(self) -> dict[str, Any]:
        """Return the options in which a resumed training must agree."""
        same = {name: value for name, value in asdict(self).items() if name not in ("iterations", "memory")}
        same["text"], same["valid"] = _digest(self.text), _digest(self.valid)
        same["prior"] = None if self.prior is None else Prior.load(self.prior).fingerprint
        return same


def train(options: FieldOptions, out: str, watch: Watch = lambda progress: None) -> tuple[MarkovField, list[str]]:
    """Return the trained field, saved in `out`, and notes for the user. An interrupted training resumes.

    Raises:
        OptionError, DataError, PriorError: invalid options or files, or another training in `out`.
    """
    options.check()
    check_free(out)
    words, form = _form(options)
    text = words.read(options.text)
    valid = words.read(options.valid) if options.valid else None
    notes = _notes(text, valid)
    settings = options.identity()
    saved = _unfinished(out, settings)
    if options.objective == PSEUDO:
        field = _by_pseudo_likelihood(options, words, form, text, valid, settings, watch)
    else:
        field = _by_bound(options, out, words, form, text, valid, settings, saved, watch)
    field.save(out)
    return field, notes


def _form(options: FieldOptions) -> tuple[FieldWords, Form]:
    """Return the words, and the form of the potentials over their kinds."""
    if options.prior is None:
        words = words_of_text(options.text, options.words)
        offset, features = torch.zeros(len(words.symbols), dtype=torch.float64), None
    else:
        words, offset, features = words_of_prior(Prior.load(options.prior), options.prior)
    width = 0 if options.form == EXPLICIT else options.width
    form = Form(options.form, options.order, offset, width, features)
    needed, room = memory_of_explicit(form.size, form.order, KEPT), _free_memory()
    if form.name == EXPLICIT and room is not None and needed > room:
        raise OptionError(
            f"--form explicit: potentials of {form.size:,} words and order {form.order}, their gradients and {KEPT} "
            f"steps of L-BFGS take {needed / 2**30:,.1f} GiB, found {room / 2**30:,.1f} GiB free; choose fewer "
            "--words, or a form of low rank (uw)"
        )
    return words, form


def _by_bound(
    options: FieldOptions,
    out: str,
    words: FieldWords,
    form: Form,
    text: FieldText,
    valid: FieldText | None,
    settings: dict[str, Any],
    saved: dict[str, torch.Tensor] | None,
    watch: Watch,
) -> MarkovField:
    moments, other = (
        None if part is None else count_moments(part.rows, part.lengths, words.separator, form.order, form.size)
        for part in (text, valid)
    )
    assert moments is not None
    objective = Objective(form, moments, options.penalty, options.memory)
    plan = Plan(options.method, options.iterations)
    if saved is not None:
        if not Learner.is_state(objective, plan, saved):
            raise DataError(
                f"{out}: {TRAINING_FILE}: expected the state of this training, found another one; remove the folder, "
                "and train again"
            )
        learner = Learner.resume(objective, plan, saved, other)
    else:
        seen = torch.where(moments.unary > 0, moments.unary, 1.0 / moments.tokens).log()
        learner = Learner.begin(objective, plan, form.initial(options.seed, seen), other)
    last = time.monotonic()

    def field() -> MarkovField:
        return MarkovField(words, form, *learner.result(), settings, memory=options.memory)

    def after(learner: Learner, progress: Progress) -> None:
        nonlocal last
        watch(progress)
        if time.monotonic() - last >= SAVE_EVERY:
            field().save(out, learner.state())
            last = time.monotonic()

    learner.run(after)
    return field().tightened()


def _by_pseudo_likelihood(
    options: FieldOptions,
    words: FieldWords,
    form: Form,
    text: FieldText,
    valid: FieldText | None,
    settings: dict[str, Any],
    watch: Watch,
) -> MarkovField:
    """Train by epochs, without checkpoints."""
    window, other = (
        None if part is None else windows(layout(part.rows, part.lengths, words.separator, form.order), form.order)
        for part in (text, valid)
    )
    assert window is not None
    seen = torch.bincount(window[:, form.order], minlength=form.size).double().clamp(min=1.0) / len(window)
    start = form.initial(options.seed, seen.log())
    parameters = learn_by_pseudo_likelihood(
        form, start, window, other, options.iterations, options.penalty, options.seed, watch=watch
    )
    delta = torch.zeros(form.order, form.size, dtype=torch.float64)
    return MarkovField(words, form, parameters, delta, settings, memory=options.memory).tightened()


def _unfinished(out: str, settings: dict[str, Any]) -> dict[str, torch.Tensor] | None:
    """Return the state of an interrupted training in `out`, or None. Raises OptionError for a different training."""
    if not os.path.exists(out):
        return None
    trained = MarkovField.load(out).settings
    differing = sorted(name for name in settings if trained.get(name) != settings[name])
    if differing:
        raise OptionError(
            f"--out {out}: expected a free name, or the same training to resume, found one with another "
            f"{', '.join('--' + name for name in differing)}; give another --out"
        )
    state = read_training(out)
    if state is None:
        raise OptionError(f"--out {out}: this training has ended; give another --out, or remove the folder")
    return state


def _notes(text: FieldText, valid: FieldText | None) -> list[str]:
    """Return notes on the texts for the user."""
    notes = [f"{len(text.rows):,} words, {100 * text.unknown.mean():.1f} % of them unknown"]
    for name, part in (("--text", text), ("--valid", valid)):
        if part is not None and part.empty:
            notes.append(f"{name}: {part.empty:,} lines without words, which are left out")
    return notes


def _digest(paths: Sequence[str]) -> str:
    """Return the digest of the contents of files, in order."""
    digest = hashlib.sha256()
    for path in paths:
        if os.path.isfile(path):
            digest.update(bytes.fromhex(file_digest(Path(path))))
    return digest.hexdigest()


def _free_memory() -> int | None:
    """Return the free memory in bytes, if the system reports it."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None
