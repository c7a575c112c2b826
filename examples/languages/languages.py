"""Bits per character of many languages: train and measure the rows of language_rows.py. Finished rows are skipped.

    languages.py list                                                             the rows
    languages.py commands [--languages …] --data FOLDER --out OUT [ROW …]          the command lines
    languages.py train [--languages …] [--seeds 1 …] --data FOLDER --out OUT [ROW …]
    languages.py collect --out OUT --results FILE                                  all results into one JSON file
    languages.py table --results FILE [--picture FILE]                             the best rows of each group
    languages.py rows --results FILE                                               all of them, in every detail

OUT has the texts of language_texts.py. A row of a language is finished when OUT/LANGUAGE/ROW-SEED/result.json exists.
An interrupted row is trained again. Several processes can run at the same time: a row that another process works on is
skipped.
"""

import argparse
import json
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what examples share

from example_parts.text_units import lines_of
from example_parts.unit_bits import bits_of_unknown_character, whole_bits
from language_curves import draw
from language_mixtures import ALONE, finish_mixture, finish_ngrams, ngram_commands
from language_rows import BUDGET, SPELLING, Row, chosen, commands, fits, score_command, write_units
from language_table import HELD_OUT, all_rows, by_language, tables
from language_texts import LANGUAGES, Language
from language_texts import chosen as chosen_languages

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, LLRNNError, OptionError, one_line_errors
from fairseq_llrnn.files.atomic_write import whole_file

USER_DIR = str(Path(fairseq_llrnn.__file__).parent)
Run = Callable[[Sequence[str], Path], float]  # a command and its log -> seconds of processor time
Score = Callable[[Sequence[str], str], str]  # a command and its stdin -> its stdout
VALID = re.compile(r"valid on 'valid' subset \| loss ([0-9.]+) ")
PARAMETERS = re.compile(r"num\. shared model params: ([0-9,]+)")


def run(command: Sequence[str], log: Path) -> float:
    """Run a command in a copy of this process, and append its output to `log`. Raises DataError if it fails."""
    from example_parts import processes  # imports fairseq

    return processes.run(command[0], command[1:], log)


def score(command: Sequence[str], text: str) -> str:
    """Return a command's output for a text on its stdin, run like above. Raises DataError if it fails."""
    from example_parts import processes

    with tempfile.TemporaryDirectory() as folder:
        stdin, stdout = Path(folder) / "stdin", Path(folder) / "stdout"
        stdin.write_text(text, encoding="utf-8")
        processes.run(command[0], command[1:], Path(folder) / "log", stdin, stdout)
        return stdout.read_text(encoding="utf-8")


def curve(losses: Sequence[float], valid: dict[str, float], tokens: int, more: float) -> list[float]:
    """Return bits per character of the validation text after each epoch.

    Args:
        losses: bits per token of the row's units, from the training log.
        tokens: number of tokens of the validation text, ends included.
        more: bits outside the training loss, for the spelling of unknown words, taken from the best model.
    """
    return [round((loss * tokens + more) / valid["characters"], 4) for loss in losses]


def finish(
    row: Row, language: Language, seed: int, data: Path, out: Path, budget: float, execute: Run, scored: Score
) -> dict[str, Any]:
    """Build, train and measure a row of a language."""
    speller = out / language.name / f"{SPELLING.name}-1" / "data-bin" / "prior"
    if row.units == "unk" and not speller.exists():
        raise DataError(f"{speller}: expected the character model that spells <unk>, found none; train `spelling` too")
    if row.network:
        return finish_mixture(row, out / language.name, seed, speller, execute)
    place, text = out / language.name / f"{row.name}-{seed}", out / language.name / "text"
    shutil.rmtree(place / "model", ignore_errors=True)  # of a training that was interrupted
    (place / "train.log").unlink(missing_ok=True)
    write_units(row, language, text, place)
    if row.ngrams:
        known = {"language": language.name, "seed": seed, "budget": budget}
        return known | finish_ngrams(row, place, execute, scored)
    seconds = {}
    for command in commands(row, language, data, place, USER_DIR, seed, budget):
        seconds[command[0]] = execute(command, place / "train.log")
    said = (place / "train.log").read_text(encoding="utf-8")
    losses = [float(found) for found in VALID.findall(said)]
    if not losses:
        raise DataError(f"{place / 'train.log'}: expected losses on the validation text from fairseq-train, found none")
    measured: dict[str, dict[str, float]] = {}
    more = 0.0
    for split in HELD_OUT:
        facts = json.loads(scored(score_command(row, place), (place / f"{split}.txt").read_text(encoding="utf-8")))
        plain = lines_of(text / f"{split}.txt")
        measured[split] = whole_bits(row.units, facts, plain, place, speller)
        if split == "valid":
            unknown = facts["unknown_words"] * bits_of_unknown_character() if row.units == "characters" else 0.0
            more = measured[split].get("spelling_bits", unknown)
            tokens = int(facts["words"] + facts["sentences"])
    return {
        "language": language.name,
        "row": row.name,
        "seed": seed,
        "budget": budget,
        "epochs": len(losses),
        "best_epoch": losses.index(min(losses)) + 1,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "parameters": int(PARAMETERS.findall(said)[-1].replace(",", "")),
        **measured,
        "curve": curve(losses, measured["valid"], tokens, more),
    }


def commands_of(
    row: Row, language: Language, seed: int, data: Path, out: Path, budget: float
) -> Iterable[tuple[str, ...]]:
    """Return the command lines of a row, whose texts are written, or those of a mixture's n-grams."""
    place = out / language.name / f"{row.name}-{seed}"
    if row.network:
        return ngram_commands(row, out / language.name / f"{row.network}-{seed}", place).values()
    write_units(row, language, out / language.name / "text", place)
    if row.ngrams:
        return ngram_commands(row, place, place, ALONE).values()
    return commands(row, language, data, place, USER_DIR, seed, budget)


def work(
    rows: Sequence[Row], languages: Sequence[Language], seeds: Sequence[int], data: Path, out: Path, budget: float
) -> int:
    """Finish every row that no other process works on, and return the exit status."""
    from example_parts.processes import alone

    failures = 0
    for seed, language, row in ((s, language, row) for s in seeds for language in languages for row in rows):
        result = out / language.name / f"{row.name}-{seed}" / "result.json"
        name = f"{language.name} {row.name}-{seed}"
        if not fits(row, language):
            continue
        if result.exists():
            found = json.loads(result.read_text(encoding="utf-8"))
            if found.get("budget", budget) != budget:
                print(
                    f"languages.py: error: {name}: expected results of --budget {budget:g}, found those of --budget "
                    f"{found['budget']:g}; use another --out",
                    file=sys.stderr,
                    flush=True,
                )
                failures += 1
            continue
        with ExitStack() as stack:
            try:
                stack.enter_context(alone(result.parent))
            except OptionError:
                print(f"{name}: another process is working on it", flush=True)
                continue
            try:
                found = finish(row, language, seed, data, out, budget, run, score)
                with whole_file(result) as file:
                    json.dump(found, file)
            except (LLRNNError, OSError) as error:
                print(f"languages.py: error: {name}: {error}", file=sys.stderr, flush=True)
                failures += 1
                continue
        bits = ", ".join(f"{split} {found[split]['bits_per_character']:.4f}" for split in HELD_OUT)
        seconds = found["seconds"]["fairseq-train"]
        print(f"{name}: {bits}; {found['epochs']} epochs, best {found['best_epoch']}, {seconds:.0f} s", flush=True)
    return 2 if failures else 0


def results_of(out: Path) -> list[dict[str, Any]]:
    """Return all results below a folder, by language, row and seed. Raises DataError if there are none."""
    paths = [path for name in LANGUAGES for path in sorted((out / name).glob("*/result.json"))]
    if not paths:
        raise DataError(f"{out}: expected results of `languages.py train`, found none")
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def read_results(path: Path) -> list[dict[str, Any]]:
    """Read the file of `collect`. Raises DataError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected what `languages.py collect` writes, found: {error}") from error
    return list(found)


@one_line_errors("languages.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="bits per character of many languages")
    parser.add_argument("action", choices=("list", "commands", "train", "collect", "table", "rows"))
    parser.add_argument("rows", nargs="*", metavar="ROW", help="rows or groups (default: all of the table)")
    parser.add_argument("--languages", nargs="+", default=[], metavar="LANGUAGE", help="default: all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of a training (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=Path("DATA"), help="the folder given to language_texts.py")
    parser.add_argument("--out", type=Path, default=Path("OUT"), help="what language_texts.py wrote")
    parser.add_argument("--results", type=Path, default=Path("languages.json"), help="the results in one file")
    parser.add_argument("--picture", type=Path, help="of `table`: draw the learning curves into this file, too")
    args = parser.parse_intermixed_args()  # rows may come after options
    return act(args)


def act(args: argparse.Namespace) -> int:
    """Run the command line. Raises LLRNNError."""
    rows, languages = chosen(args.rows), chosen_languages(args.languages)
    if args.action == "list":
        print("\n".join(f"{row.name:30} {row.group:8} {row.what}" for row in rows))
        return 0
    if args.action == "table":
        results = read_results(args.results)
        if args.picture is not None:
            draw(by_language(results), args.picture)
        print(tables(results))
        return 0
    if args.action == "rows":
        print(all_rows(read_results(args.results)))
        return 0
    if args.action == "collect":
        found = results_of(args.out)
        with whole_file(args.results) as file:
            file.write("[\n" + ",\n".join(json.dumps(result) for result in found) + "\n]\n")
        return 0
    for language in languages:
        if not (args.out / language.name / "text" / "test.txt").exists():
            raise OptionError(
                f"{args.out / language.name}: expected the texts that language_texts.py writes, found none; run it "
                "first, and see --out"
            )
    data, out = args.data.resolve(), args.out.resolve()
    if args.action == "train":
        return work(rows, languages, args.seeds, data, out, args.budget)
    for language in languages:
        for row in (row for row in rows if fits(row, language)):
            for command in commands_of(row, language, args.seeds[0], data, out, args.budget):
                print(shlex.join(command))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
