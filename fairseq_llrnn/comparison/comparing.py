"""Compare language models on one text: `llrnn compare` and `fairseq_llrnn.compare`.

The folder of results has `settings.json`, the choices that all its results depend on. Starting again with the same
choices skips finished models. More models, trials and seeds can be added. More epochs repeat the trainings that have
not converged. inputs.py has the rest that a model is made from.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fairseq_llrnn.comparison import tables
from fairseq_llrnn.comparison.inputs import check_sources, digests
from fairseq_llrnn.comparison.jobs import Networks, is_finished, read_result, run_job
from fairseq_llrnn.comparison.models import Job, chosen_models, title, trials_of
from fairseq_llrnn.comparison.processes import failure_of, run_all
from fairseq_llrnn.comparison.results import ComparisonTable, commands, write
from fairseq_llrnn.comparison.rows import (
    Measured,
    Row,
    bits_per_character,
    joined,
    measured_of,
    mixtures_of,
    perplexity_of,
    row_of,
    with_differences,
    with_doubts,
)
from fairseq_llrnn.comparison.settings import NEURAL, Comparison
from fairseq_llrnn.comparison.texts import Texts, read_texts, write_treebank
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.atomic_write import check_room, lock, whole_file
from fairseq_llrnn.files.reading import as_paths

SETTINGS = "settings.json"
LOCK = "lock"
Say = Callable[[str], None]
BAR = "{percentage:3.0f}% {bar} {remaining} left{postfix}"


def compare(settings: Comparison, load_networks: Callable[[], Networks], say: Say) -> ComparisonTable:
    """Train and score all models that have no result yet, and write the table.

    Args:
        load_networks: imports what needs fairseq.
        say: prints a line.

    Raises:
        OptionError, DataError: wrong choices, texts that cannot be compared, or a folder with other results.
    """
    began = time.monotonic()
    settings.check(settings.name_of)
    texts = read_texts(settings)
    models = chosen_models(texts, settings)
    networks = _networks(models, load_networks, settings)
    inputs = digests(models, settings, texts)
    first = settings.seeds[0]
    jobs = [replace(job, inputs=inputs.get(m, "")) for m in models for job in trials_of(m, settings, first)]
    check_sources({job.model for job in jobs if not is_finished(settings, job)}, settings, texts)
    choices = {"lower": settings.lower, "texts": texts.fingerprint, "max_epoch": settings.epochs}
    _check_folder(choices, settings)
    with _alone(settings):
        with whole_file(settings.out / SETTINGS) as file:
            json.dump(choices, file, indent=1)
        write_treebank(texts)
        try:
            return _compare(settings, texts, jobs, "mixed" in models, networks, say, began)
        except KeyboardInterrupt:
            say(f"stopped; the same command continues with the results in {settings.out}")
            raise


def _compare(
    settings: Comparison, texts: Texts, jobs: Sequence[Job], has_mixtures: bool, networks: Networks | None, say: Say,
    began: float,
) -> ComparisonTable:  # fmt: skip
    """Run the jobs without a result, and write the table.

    Args:
        jobs: all settings of each model, with the first seed. began: the time at the start.
    """
    for line in (*texts.summary(), *(f"note: {note}" for note in texts.notes)):
        say(line)
    likely = [_chosen(of_name, texts, settings) or of_name[0] for of_name in _by_name(jobs).values()]
    expected = [*jobs, *_repeated(likely, settings)]
    done = [job for job in expected if is_finished(settings, job)]
    total = _seconds(expected, texts, settings)
    minutes = max(1, round((total - _seconds(done, texts, settings)) / settings.jobs / 60))
    finished = f" ({len(done):,} of them finished)" if done else ""
    left = f"{finished}, about {plural(minutes, 'minute')} on {plural(settings.jobs, 'idle core')}"
    say(f"{plural(len(expected), 'model')}{', all finished' if len(done) == len(expected) else left}")
    _check_space(expected, texts, settings)
    with tqdm(total=total, disable=None, bar_format=BAR) as bar:
        _run(jobs, texts, settings, networks, bar)
        chosen = {name: _chosen(of_name, texts, settings) for name, of_name in _by_name(jobs).items()}
        again = _repeated([job for job in chosen.values() if job is not None], settings)
        _run(again, texts, settings, networks, bar)
        bar.update(bar.total - bar.n)
    results = [result for job in jobs if (result := read_result(settings.out, job)) is not None]
    for warning in dict.fromkeys(text for result in results for text in result.get("warnings", ())):
        say(f"warning: {warning}")
    for job in (*jobs, *again):
        if (reason := failure_of(settings.out / job.place)) is not None:
            say(f"note: {job.place} failed: {reason}")
    rows = _rows(_by_name(jobs), chosen, texts, settings, has_mixtures)
    name = (settings.folder or settings.train or Path()).absolute().name
    text = tables.paragraph(rows, texts, name, settings.num_tries, as_paths(settings.spelling_lexicon))
    table = ComparisonTable(rows, settings.out, text, commands(rows, settings.out))
    write(table, texts, settings, time.monotonic() - began)
    return table


@contextmanager
def _alone(settings: Comparison) -> Iterator[None]:
    """Hold the lock of a folder. Trainings that survive a killed process hold it, too. Raises OptionError."""
    out = settings.name_of("out")
    with (settings.out / LOCK).open("w") as file:
        if lock(file.fileno()) is False:
            place = f"{out} {settings.out}"
            raise OptionError(f"{place}: another process is working on it; wait for its end, or use another {out}")
        yield


def plural(number: int, noun: str) -> str:
    """Return `1 model`, `12 models`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _networks(models: Sequence[str], load_networks: Callable[[], Networks], settings: Comparison) -> Networks | None:
    """Return what trains networks, if a model needs it. Raises OptionError without fairseq."""
    neural = [model for model in models if model in NEURAL]
    try:
        return load_networks() if neural else None
    except OptionError as error:
        name = settings.name_of
        alone = f"without it, only {name('models')} ngrams and {name('pretrained')} work"
        raise OptionError(f"models {', '.join(neural)}: {error}; {alone}") from None


def _check_folder(choices: Mapping[str, Any], settings: Comparison) -> None:
    """Make the folder, if it is new, empty, or has results of the same choices and of as few epochs.

    Raises:
        OptionError: the folder has other files, or its results are of other choices.
    """
    path, name = settings.out / SETTINGS, settings.name_of
    place = f"{name('out')} {settings.out}"
    if path.exists():
        _check_choices(choices, path, settings)
    elif settings.out.exists() and (not settings.out.is_dir() or any(settings.out.iterdir())):
        other = "other files" if settings.out.is_dir() else "a file"
        raise OptionError(f"{place}: expected a new or empty folder, found {other}; name another one")
    try:
        check_room(path)
    except OSError as error:
        raise OptionError(f"{place}: cannot be written: {error.strerror}; name another place") from None
    settings.out.mkdir(parents=True, exist_ok=True)


def _check_choices(choices: Mapping[str, Any], path: Path, settings: Comparison) -> None:
    """Raise OptionError if the choices in a file are others. Results may have fewer epochs."""
    name = settings.name_of
    try:
        kept = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise OptionError(f"{path}: expected settings of a comparison, found none; use another {name('out')}") from None

    def described(key: str, value: object) -> str:
        begin = "with" if value is not None else "without"
        return " ".join(filter(None, (begin, name(key), "" if value is None else str(value))))

    for key, value in choices.items():
        found = kept.get(key)
        if found != value and not (key == "max_epoch" and isinstance(found, int) and found < value):
            both = [described(key, one) for one in (value, found)]
            both = ["of these texts", "of other texts"] if key == "texts" else both
            raise OptionError(
                f"{name('out')} {settings.out}: expected results {both[0]}, found those {both[1]}; use another "
                f"{name('out')}"
            )


def _repeated(jobs: Sequence[Job], settings: Comparison) -> list[Job]:
    """Return further jobs with the settings of these: other seeds, and closed dictionaries."""
    seeds = [replace(job, seed=seed) for job in jobs if job.trial for seed in settings.seeds[1:]]
    closed = [replace(job, is_closed=True) for job in (*jobs, *seeds) if settings.closed and job.has_words]
    return [*seeds, *closed]


def _check_space(expected: Sequence[Job], texts: Texts, settings: Comparison) -> None:
    """Raise OptionError if the disk has no space for the jobs without a result."""
    sizes = [job.bytes(texts) for job in expected if not is_finished(settings, job)]
    needed = sum(sizes) + 2 * settings.jobs * max(sizes, default=0)  # a training has up to three checkpoints
    free, out = shutil.disk_usage(settings.out).free, settings.name_of("out")
    if needed > free:
        raise OptionError(
            f"{out} {settings.out}: expected {needed / 1e6:,.0f} MB of free space for {plural(len(sizes), 'model')}, "
            f"found {free / 1e6:,.0f} MB; free some, or use {out} on another disk. Finished models are kept"
        )


def _by_name(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """Return the jobs of each model of the table."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.model, []).append(job)
    return found


def _seconds(jobs: Sequence[Job], texts: Texts, settings: Comparison) -> float:
    return sum(job.seconds(texts, settings.epochs) for job in jobs)


def _run(jobs: Sequence[Job], texts: Texts, settings: Comparison, networks: Networks | None, bar: tqdm[None]) -> None:
    """Run the jobs without a result."""
    done = [job for job in jobs if is_finished(settings, job)]
    bar.update(_seconds(done, texts, settings))
    left = {settings.out / job.place: job for job in jobs if job not in done}
    works = {place: partial(run_job, job, texts, settings, networks) for place, job in left.items()}
    run_all(works, {place: _seconds([job], texts, settings) for place, job in left.items()}, settings.jobs, bar)


def _chosen(jobs: Sequence[Job], texts: Texts, settings: Comparison) -> Job | None:
    """Return the job with the fewest bits on the validation text, or None if all failed."""
    found = {job: result for job in jobs if (result := read_result(settings.out, job)) is not None}
    return min(found, key=lambda job: bits_per_character(found[job], "valid", texts)) if found else None


def _rows(
    trials: Mapping[str, Sequence[Job]],
    chosen: Mapping[str, Job | None],
    texts: Texts,
    settings: Comparison,
    has_mixtures: bool,
) -> list[Row]:
    """Return the rows of the table from the results. trials, chosen: by the name of the model."""
    measured, rows = list[Measured](), list[Row]()
    for name, job in chosen.items():
        if job is None:
            reasons = [reason for one in trials[name] if (reason := failure_of(settings.out / one.place)) is not None]
            rows.append(Row(name, title(name), failure=reasons[0] if reasons else "no result"))
            continue
        jobs = [replace(job, seed=seed) for seed in (settings.seeds if job.trial else settings.seeds[:1])]
        results = [result for one in jobs if (result := read_result(settings.out, one)) is not None]
        measured.append(measured_of(results))
        row = replace(row_of(measured[-1], texts), place=str(job.place))
        closed = [read_result(settings.out, replace(one, is_closed=True)) for one in jobs if settings.closed]
        finished = [result for result in closed if result is not None]
        rows.append(replace(row, perplexity=perplexity_of(finished)) if finished else row)
    rows += [*mixtures_of(measured, texts), *joined(measured, texts)] if has_mixtures else []
    return with_doubts(with_differences(rows, texts))
