"""The long form of tests/torture: damaged inputs to every reader, kills and full disks at random moments, two writers.

    python scripts/torture.py                          all of it: 100,000 inputs, 110 kills, 30 full disks, 20 races
    python scripts/torture.py fuzz --inputs 2000 --only "prior: ngram" grammar --seed 3
    python scripts/torture.py fuzz --again "prior: ngram" 475 --keep folder       one input again, files kept

Every fault is printed with the numbers that reproduce it. The exit status is 1 if there is one. Inputs and readers are
in tests/support (fuzzing.py, kills.py, races.py).
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from evidence_world import EvidenceWorld, make_evidence_world  # noqa: E402
from extreme_numbers import checkpoint_number_targets, file_targets, option_targets, prior_number_targets  # noqa: E402
from fuzz_targets import Target  # noqa: E402
from fuzzing import Outcome, again, fuzz, grouped, reader_targets  # noqa: E402
from hostile_checkpoints import DAMAGES, checkpoint_targets  # noqa: E402
from hostile_models import make_model_prior, model_prior_target  # noqa: E402
from hostile_priors import make_priors, prior_targets  # noqa: E402
from kills import Stopper, Trial, priors, rescorings, trainings  # noqa: E402
from races import race  # noqa: E402
from shell import Shell  # noqa: E402
from tiny_world import World, make_world  # noqa: E402
from translation_world import TranslationWorld, make_translation_world  # noqa: E402

# priors and checkpoints take a hundred times as long as texts, so that fewer of them are read
SHARES = {"prior: ": 0.5, "checkpoint: ": 0.25, "option: ": 0.5, "number in ": 0.5}
WITH_MODEL = ("prior: model", "number in prior: model", *(f"checkpoint: {name}" for name in DAMAGES))


class Worlds:
    """The small data of the tests, created at first use."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shell = folder, Shell()
        places = [folder / name for name in ("world", "translation", "evidence", "work")]
        for place in places:
            place.mkdir()
        self.work = places[3]
        self.world: World = make_world(places[0], self.shell)
        self.translation: TranslationWorld = make_translation_world(places[1], self.world, self.shell)
        self.evidence: EvidenceWorld = make_evidence_world(places[2], self.world, self.shell)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)  # notes are counted, not printed
    with tempfile.TemporaryDirectory(dir=args.scratch) as name:
        folder = Path(name)
        if args.again:
            return make_again(args, folder)
        if args.what == "fuzz" and not any(chosen(name, args.only) for name in WITH_MODEL):
            faults = run_fuzz(args, folder, None)
            print(f"{faults} faults")
            return 1 if faults else 0
        worlds = Worlds(folder)
        faults = 0
        if args.what in ("all", "fuzz"):
            faults += run_fuzz(args, worlds.work, worlds)
        if args.what in ("all", "kill"):
            faults += run_stops("kills", args.kills, args.seed, worlds, args.only)
        if args.what in ("all", "fill"):
            faults += run_stops("full disks", args.fills, args.seed, worlds, args.only)
        if args.what in ("all", "race"):
            faults += run_races(args.races, worlds)
        worlds.shell.close()
    print(f"{faults} faults")
    return 1 if faults else 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Damaged inputs, kills, full disks and races, at length.")
    parser.add_argument("what", nargs="?", default="all", choices=("all", "fuzz", "kill", "fill", "race"))
    parser.add_argument("--inputs", type=int, default=100_000, metavar="N", help="damaged inputs, all together")
    parser.add_argument("--kills", type=int, default=110, metavar="N")
    parser.add_argument("--fills", type=int, default=30, metavar="N", help="full disks")
    parser.add_argument("--races", type=int, default=20, metavar="N", help="times that two writers start together")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument(
        "--only", nargs="+", metavar="TEXT", help="only readers, or commands, with one of these in the name"
    )
    parser.add_argument("--again", nargs=2, metavar=("NAME", "NUMBER"), help="one input again, in this process")
    parser.add_argument("--keep", default="torture-input", metavar="DIR", help="folder where --again writes it")
    parser.add_argument("--scratch", metavar="DIR", help="folder for files meanwhile (default: TMPDIR)")
    return parser.parse_args(argv)


def chosen(name: str, only: Sequence[str] | None) -> bool:
    return only is None or any(text in name for text in only)


def targets_of(folder: Path, worlds: Worlds | None) -> dict[str, Target]:
    """Return all targets. Those with a model, which must be trained, are included only with `worlds`."""
    for name in ("priors", "options"):
        (folder / name).mkdir()
    priors = make_priors(folder / "priors")
    targets = {**reader_targets(), **prior_targets(priors), **option_targets(folder / "options")}
    targets |= file_targets(folder / "options")
    targets |= prior_number_targets(priors) | checkpoint_number_targets(priors)
    if worlds is not None:
        from fairseq_llrnn.plugin.models.frozen_lm import load_general_model  # which registers what checkpoints name

        model = folder / "model"
        worlds.shell.run("fairseq-train", *worlds.world.train_args(save_dir=model), "--max-update", 3)
        checkpoint = model / "checkpoint_last.pt"
        prior = make_model_prior(worlds.world, checkpoint, worlds.shell, folder / "model-prior")
        targets |= model_prior_target(prior) | checkpoint_targets(checkpoint, worlds.world.data)
        targets |= prior_number_targets({"model": prior}, load_general_model)
    return targets


def run_fuzz(args: argparse.Namespace, work: Path, worlds: Worlds | None) -> int:
    """Run the damaged inputs. Without `worlds`, targets with a model are left out."""
    targets = targets_of(work, worlds)
    share = {name: next((s for start, s in SHARES.items() if name.startswith(start)), 1.0) for name in targets}
    each = args.inputs / sum(share.values())
    outcomes: dict[str, Outcome] = {}
    print("| reader | inputs | accepted | refused | faults | slowest, s | memory, MiB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, target in targets.items():
        if chosen(name, args.only):
            found = outcomes[name] = fuzz(target, name, round(each * share[name] + 0.5), args.seed, work)
            counts = (found.counts.total(), *(found.counts[kind] for kind in ("accepted", "refused", "fault")))
            cells = [*(f"{count:,}" for count in counts), f"{found.slowest:.2f}", f"{found.most:.0f}"]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    total = sum((found.counts for found in outcomes.values()), Counter())
    print(f"{total.total():,} inputs: {dict(total)}")
    for name, number, first, what in grouped(outcomes):
        print(f"FAULT {name}: {number} times, first --seed {args.seed} --again {name!r} {first}: {what}")
    return total["fault"]


def run_stops(what: str, how_many: int, seed: int, worlds: Worlds, only: Sequence[str] | None) -> int:
    subjects = [
        *trainings(worlds.shell, worlds.world, worlds.translation, worlds.evidence),
        *priors(worlds.world),
        *rescorings(worlds.shell, worlds.translation, worlds.work),
    ]
    asked = [subject for subject in subjects if chosen(subject.name, only)]
    print(f"| {what} | seconds alone | stopped | ended before | faults |\n|---|---:|---:|---:|---:|")
    faults: list[Trial] = []
    for i, subject in enumerate(asked):
        share = len(range(i, how_many, len(asked)))
        stopper = Stopper(worlds.shell, subject, worlds.work / what)
        stop = stopper.kill if what == "kills" else stopper.fill
        trials = [stop(number, seed) for number in range(share)]
        wrong = [trial for trial in trials if trial.fault]
        stopped = sum(trial.stopped for trial in trials)
        cells = [f"{stopper.seconds:.1f}", stopped, share - stopped, len(wrong)]
        print(f"| {subject.name} | {' | '.join(map(str, cells))} |", flush=True)
        faults += wrong
    show_faults(faults)
    return len(faults)


def show_faults(trials: Iterable[Trial]) -> None:
    for trial in trials:
        print(f"FAULT {trial.subject}, stopped at {trial.at:.3f}: {trial.fault}")


def run_races(how_many: int, worlds: Worlds) -> int:
    start = time.monotonic()
    found = [race(worlds.translation, worlds.work / f"race-{number}") for number in range(how_many)]
    faults = [fault for fault in found if fault]
    print(f"{how_many} races of two writers in {time.monotonic() - start:.0f} s: {len(faults)} faults")
    for fault in faults:
        print(f"FAULT race: {fault}")
    return len(faults)


def make_again(args: argparse.Namespace, folder: Path) -> int:
    name, number = args.again[0], int(args.again[1])
    targets = targets_of(folder, Worlds(folder) if name in WITH_MODEL else None)
    if name not in targets:
        print(f"--again {name}: expected one of {', '.join(targets)}", file=sys.stderr)
        return 2
    place = Path(args.keep)
    print(f"input {number} of {name} at {place}")
    print(again(targets[name], name, number, args.seed, place))
    return 0


if __name__ == "__main__":
    sys.exit(main())
