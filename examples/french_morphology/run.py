"""Train and measure the models of experiments.py, one after the other. Finished ones are skipped.

    run.py list                                       the names, with a description of each model
    run.py commands --ud FOLDER --out OUT [NAME …]    the command lines
    run.py train --ud FOLDER --out OUT [NAME …]       priors, trainings, measurements
    run.py mix --ud FOLDER --out OUT NAME …           finished models, mixed with n-grams of the training text

A model is finished when OUT/models/NAME/result.json exists. An interrupted training resumes from its last epoch.
Several processes can run at the same time (each takes one thread, at low priority). A model that another process works
on is skipped.
"""

import argparse
import fcntl
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what examples share

from example_parts.mixtures import ORDERS
from experiments import Model, Prior, models, ngrams, trained_as

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, LLRNNError, OptionError, one_line_errors

# A softmax over the vocabulary takes and returns hundreds of MB a step; without these settings glibc gives them back to
# the kernel each time, which then spends a third of the processor on clearing pages.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}

# fairseq's own model reads its checkpoints only so; ours are read safely all the same.
OWN_CHECKPOINTS = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}

USER_DIR = str(Path(fairseq_llrnn.__file__).parent)


@contextmanager
def locked(path: Path, wait: bool) -> Iterator[bool]:
    """Return whether this process holds the lock `path`. The system frees it when the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def execute(command: Sequence[str], log: Path) -> None:
    """Run a command with one thread, and append its output to `log`."""
    # The commands of this very installation, whether or not it is activated.
    program = Path(sys.executable).parent / command[0]
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ {shlex.join(command)}\n")
        stream.flush()
        environment = os.environ | {"OMP_NUM_THREADS": "1"} | KEEP_MEMORY | OWN_CHECKPOINTS
        finished = subprocess.run(
            [str(program), *command[1:]], env=environment, stdout=stream, stderr=stream, check=False
        )
    if finished.returncode:
        last = " / ".join(log.read_text(encoding="utf-8").splitlines()[-3:])
        raise DataError(f"{command[0]} failed with status {finished.returncode}; {log} ends with: {last}")


def build(prior: Prior, ud: Path, out: Path, log: Path) -> Path:
    """Return the folder of the prior, and build it if it is missing."""
    place = prior.folder(out)
    with locked(place.with_suffix(".lock"), wait=True):
        if not (place / "prior.json").exists():
            execute(prior.command(ud, out), log)
    return place


def build_and_train(model: Model, ud: Path, out: Path) -> None:
    folder = model.folder(out)
    if model.prior is not None:
        build(model.prior, ud, out, folder / "train.log")
    log, trained = folder / "train.log", folder / "trained"
    if not trained.exists():
        execute(model.command(out, USER_DIR), log)
        # fairseq cannot tell a finished training from an interrupted one and would go on for some epochs.
        trained.touch()
    elif not trained_as(model, log.read_text(encoding="utf-8")):
        raise DataError(
            f"{folder}: expected a training with the settings of experiments.py, found one with others; "
            "move the folder away to train again"
        )


def finish(model: Model, ud: Path, out: Path) -> str:
    """Train and measure an unfinished model, and return its figures as text."""
    from measure import measure  # fairseq takes seconds to import

    result = model.folder(out) / "result.json"
    if result.exists():
        return "finished"
    print(f"{model.name}: training; see {model.folder(out) / 'train.log'}", flush=True)
    build_and_train(model, ud, out)
    facts = measure(model, out)
    write(result, facts)
    test1, test2 = (facts["loss"][subset]["with_ends"] for subset in ("test1", "test2"))
    return f"Test1 {test1:.3f}, Test2 {test2:.3f} nats"


def mix(model: Model, ud: Path, out: Path) -> str:
    """Mix a finished model with n-grams, add this to its result.json, and return the figures as text."""
    from measure import mixture

    result, checkpoint = (model.folder(out) / name for name in ("result.json", "checkpoint_best.pt"))
    for needed in (result, checkpoint):  # the records that a checkout holds have no checkpoints
        if not needed.exists():
            raise DataError(
                f"{needed}: expected a finished model, found none; run.py train {model.name}, without a result.json"
            )
    try:
        facts = json.loads(result.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{result}: expected JSON, found damage ({error}); remove it and run.py train again") from error
    log = model.folder(out) / "ngrams.log"
    found = mixture(model, {order: build(ngrams(order), ud, out, log) for order in ORDERS}, out)
    write(result, facts | {"mixture": found})
    return (
        f"with {found['order']}-grams, {found['weight']:.2f} of the model: "
        f"Test1 {found['loss']['test1']:.3f}, Test2 {found['loss']['test2']:.3f} nats"
    )


def write(result: Path, facts: dict[str, Any]) -> None:
    temporary = result.with_suffix(".tmp")
    temporary.write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, result)


def work(chosen: Sequence[Model], ud: Path, out: Path, step: Callable[[Model, Path, Path], str] = finish) -> int:
    """Run a step for every model that no other process works on, and return the exit status."""
    failures = 0
    for model in chosen:
        with locked(model.folder(out) / "lock", wait=False) as alone:
            try:
                print(f"{model.name}: {step(model, ud, out) if alone else 'another process is at it'}", flush=True)
            except LLRNNError as error:
                print(f"run.py: error: {model.name}: {error}", file=sys.stderr, flush=True)
                failures += 1
    return 2 if failures else 0


STEPS = {"train": finish, "mix": mix}


def choose(names: Sequence[str]) -> list[Model]:
    """Return the models of these names or groups, in the list's order, or all without names."""
    everything = models()
    known = {model.name for model in everything} | {model.group for model in everything}
    for name in names:
        if name not in known:
            raise OptionError(f"there is no model or group {name!r}; there are: {', '.join(sorted(known))}")
    return [model for model in everything if not names or model.name in names or model.group in names]


@one_line_errors("run.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="train and measure the models of experiments.py")
    parser.add_argument("action", choices=("list", "commands", *STEPS))
    parser.add_argument("names", nargs="*", metavar="NAME", help="models or groups (default: all)")
    parser.add_argument("--ud", type=Path, default=Path("UD"), help="the folder given to prepare.py")
    parser.add_argument("--out", type=Path, default=Path("OUT"), help="what prepare.py wrote")
    args = parser.parse_intermixed_args()  # names may come after options
    chosen = choose(args.names)
    if args.action == "list":
        print("\n".join(f"{model.name:24} {model.group:10} {model.what}" for model in chosen))
    elif args.action == "commands":
        for model in chosen:
            prior = [] if model.prior is None else [model.prior.command(args.ud, args.out)]
            print("\n".join(shlex.join(command) for command in [*prior, model.command(args.out, USER_DIR)]))
    else:
        for folder, needed in ((args.ud, "treebanks"), (args.out / "data-bin", "data of prepare.py")):
            if not folder.is_dir():
                raise OptionError(f"{folder}: expected a folder with {needed}, found none; see --ud and --out")
        os.nice(10)
        return work(chosen, args.ud.resolve(), args.out.resolve(), STEPS[args.action])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
