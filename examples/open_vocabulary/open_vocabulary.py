"""Bits per character of an open vocabulary, against a softmax with <unk>, subword pieces, and characters.

    open_vocabulary.py [SYSTEM …] --text FOLDER --out OUT [--conllu FILE … | --lexicon FILE …]

FOLDER has train.txt, valid.txt, test1.txt and test2.txt, tokenised, one sentence per line, as written by
examples/french_morphology/prepare.py. A system is finished when OUT/SYSTEM/result.json exists, and is then skipped.
`--commands` only prints the commands. The table goes to stdout and OUT/table.md.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what examples share

from example_parts.text_units import lines_of
from example_parts.unit_bits import whole_bits
from open_systems import OPEN, SYSTEMS, Sizes, commands, prepare, score_command

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, one_line_errors

TESTS = ("valid", "test1", "test2")
Run = Callable[[Sequence[str], str], str]  # a command and its stdin -> its stdout


def run(command: Sequence[str], text: str = "") -> str:
    """Run a command of this installation with one thread. Raises DataError if it fails."""
    program = Path(sys.executable).parent / command[0]
    finished = subprocess.run(
        [str(program), *command[1:]], input=text, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE,
        text=True, check=False,
    )  # fmt: skip
    if finished.returncode:
        raise DataError(f"{shlex.join(command)} failed with status {finished.returncode}; its messages are above")
    return finished.stdout


def measure(name: str, text: Path, out: Path, execute: Run) -> dict[str, dict[str, float]]:
    """Return bits and characters of a trained system by test text, and the parts of the bits if it has words."""
    place, result = out / name, {}
    for test in TESTS:
        plain = lines_of(text / f"{test}.txt")
        facts = json.loads(execute(score_command(name, place), (place / f"{test}.txt").read_text(encoding="utf-8")))
        units = "open" if name in OPEN else name
        result[test] = whole_bits(units, facts, plain, place, out / "open" / "data-bin" / "prior")
    return result


def table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return bits per character, and their parts for words."""
    lines = ["| system | " + " | ".join(TESTS) + " |", "|---|" + "---:|" * len(TESTS)]
    for name, result in results.items():
        figures = " | ".join(f"{result[test]['bits_per_character']:.4f}" for test in TESTS)
        lines.append(f"| {SYSTEMS[name].what} | {figures} |")
    lines += ["", "Bits per character for known words / unknown words, as <unk> / their spelling / line ends:"]
    for name in (*OPEN, "unk"):
        for test in TESTS if name in results else ():
            parts = results[name][test]
            shares = (parts[f"{part}_bits"] / parts["characters"] for part in ("known", "unknown", "spelling", "end"))
            lines.append(f"* {name}, {test}: " + " / ".join(f"{share:.4f}" for share in shares))
    return "\n".join(lines)


def compare(
    names: Sequence[str], text: Path, out: Path, lexicon: Sequence[str], sizes: Sizes, execute: Run = run
) -> str:
    """Build and measure the systems, one after the other, and return the table of all that are finished."""
    user_dir = str(Path(fairseq_llrnn.__file__).parent)
    for name in names:
        place = out / name
        finished = place / "result.json"
        if finished.exists():
            continue
        speller = out / "open" / "data-bin" / "prior"  # its character model
        if name == "unk" and not speller.exists():
            raise DataError(f"{speller}: expected the prior that spells <unk>, found none; train `open` first")
        prepare(name, text, place, sizes)
        for command in commands(name, place, lexicon, user_dir, sizes):
            # of a text, fairseq writes the .idx last
            made = {"fairseq-preprocess": place / "data-bin" / "valid.idx", "llrnn": place / "data-bin" / "prior"}
            if command[0] == "fairseq-train":
                print(f"{name}: training; {place / 'train.log'} says how far", file=sys.stderr, flush=True)
            if command[0] not in made or not made[command[0]].exists():
                execute(command, "")
        facts: dict[str, Any] = measure(name, text, out, execute)
        finished.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    done = [name for name in SYSTEMS if (out / name / "result.json").exists()]
    return table({name: json.loads((out / name / "result.json").read_text(encoding="utf-8")) for name in done})


@one_line_errors("open_vocabulary.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="bits per character: open vocabulary, <unk>, pieces, characters")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"some of {', '.join(SYSTEMS)} (default: all)")
    parser.add_argument("--text", type=Path, required=True, help="folder of train.txt, valid.txt, test1.txt, test2.txt")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--conllu", nargs="+", default=[], help="treebank of the training text: features of words")
    parser.add_argument("--lexicon", nargs="+", default=[], help="lexicon (TSV): features of words")
    parser.add_argument("--width", type=int, default=Sizes.width, help="of all layers (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=Sizes.epochs, help="at most (default: %(default)s)")
    parser.add_argument("--commands", action="store_true", help="print the commands and run nothing")
    args = parser.parse_intermixed_args()  # systems may come after options
    names = args.systems or list(SYSTEMS)
    if unknown := set(names) - set(SYSTEMS):
        parser.error(f"unknown systems {', '.join(sorted(unknown))}; there are {', '.join(SYSTEMS)}")
    return act(args, names)


def act(args: argparse.Namespace, names: Sequence[str]) -> int:
    """Print the commands, or run them and print the table. Raises LLRNNError."""
    sizes = Sizes(width=args.width, epochs=args.epochs)
    lexicon = [part for option in ("conllu", "lexicon") for part in _given(option, getattr(args, option))]
    if args.commands:
        user_dir = str(Path(fairseq_llrnn.__file__).parent)
        for name in names:
            for command in commands(name, args.out / name, lexicon, user_dir, sizes):
                print(shlex.join(command))
        return 0
    found = compare(names, args.text, args.out, lexicon, sizes)
    (args.out / "table.md").write_text(found + "\n", encoding="utf-8")
    print(found)
    return 0


def _given(option: str, paths: Sequence[str]) -> list[str]:
    return [f"--{option}", *paths] if paths else []


if __name__ == "__main__":
    raise SystemExit(main())
