"""Train and measure the models of experiments.py, one after the other; what is finished is skipped.

    run.py list                                       the names, and what each model is
    run.py commands --ud FOLDER --out OUT [NAME …]    the command lines
    run.py train --ud FOLDER --out OUT [NAME …]       priors, trainings, measurements

A model is finished when OUT/models/NAME/result.json exists. Started again after an interruption, a training
goes on from its last epoch. Several of these can run side by side (each takes one thread, at low priority): a
model that another one works on is left to it.
"""

import argparse
import fcntl
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from experiments import Model, models, trained_as

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, LLRNNError, OptionError

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
    """Whether this process holds the lock `path`. It is free again when the process ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def execute(command: Sequence[str], log: Path) -> None:
    """Run a command with one thread, its output appended to `log`."""
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


def build_and_train(model: Model, ud: Path, out: Path) -> None:
    folder = model.folder(out)
    if model.prior is not None:
        place = model.prior.folder(out)
        with locked(place.with_suffix(".lock"), wait=True):
            if not (place / "prior.json").exists():
                execute(model.prior.command(ud, out), folder / "train.log")
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


def work(chosen: Sequence[Model], ud: Path, out: Path) -> int:
    """Finish every model that nobody else is working on; the exit status."""
    from measure import measure  # fairseq takes seconds to import

    failures = 0
    for model in chosen:
        with locked(model.folder(out) / "lock", wait=False) as alone:
            result = model.folder(out) / "result.json"
            if not alone or result.exists():
                print(f"{model.name}: {'finished' if alone else 'another process is at it'}", flush=True)
                continue
            print(f"{model.name}: training; see {model.folder(out) / 'train.log'}", flush=True)
            try:
                build_and_train(model, ud, out)
                facts = measure(model, out)
            except LLRNNError as error:
                print(f"run.py: error: {model.name}: {error}", file=sys.stderr, flush=True)
                failures += 1
                continue
            temporary = result.with_suffix(".tmp")
            temporary.write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            os.replace(temporary, result)
            test1, test2 = (facts["loss"][subset]["with_ends"] for subset in ("test1", "test2"))
            print(f"{model.name}: Test1 {test1:.3f}, Test2 {test2:.3f} nats", flush=True)
    return 2 if failures else 0


def choose(names: Sequence[str]) -> list[Model]:
    """The models of these names or groups, in the list's order; all where none is named."""
    everything = models()
    known = {model.name for model in everything} | {model.group for model in everything}
    for name in names:
        if name not in known:
            raise OptionError(f"there is no model or group {name!r}; there are: {', '.join(sorted(known))}")
    return [model for model in everything if not names or model.name in names or model.group in names]


def main() -> int:
    parser = argparse.ArgumentParser(description="train and measure the models of experiments.py")
    parser.add_argument("action", choices=("list", "commands", "train"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="models or groups (default: all)")
    parser.add_argument("--ud", type=Path, default=Path("UD"), help="the folder given to prepare.py")
    parser.add_argument("--out", type=Path, default=Path("OUT"), help="what prepare.py wrote")
    args = parser.parse_intermixed_args()  # names may come after options
    try:
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
            return work(chosen, args.ud.resolve(), args.out.resolve())
    except LLRNNError as error:
        print(f"run.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
