#!/usr/bin/env python3
"""Measure the cheapest row of each page of results again, and print it beside the figure of the page.

    python scripts/cheap_rows.py DATA [--out runs/results]

DATA has folders such as ud-hungarian-szeged (examples/README.md). Rows whose folder is absent are skipped. Each line
has the page, the run (docs/results/runs.jsonl), its figure and the new one. A difference is an error. All rows take
less than an hour on one core. The last lines name the pages without a cheap row, with the time that a row takes.
"""

import argparse
import gzip
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ledger import LEDGER, read_ledger

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


class Row(NamedTuple):
    """A row of a page. measure(data, out) returns its figure."""

    page: str
    key: str
    folder: str  # below DATA; compounds need multi30k-en-fr, too
    measure: Callable[[Path, Path], float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path("runs/results"), help="folder for texts and models")
    args = parser.parse_args()
    runs, differ = read_ledger(ROOT / LEDGER), False
    for row in ROWS:
        folder, out = args.data / row.folder, args.out / row.key
        if not folder.is_dir():
            print(f"{row.page}\t{row.key}\tskipped: {folder} is absent")
            continue
        out.mkdir(parents=True, exist_ok=True)
        expected = Decimal(runs[row.key]["value"])
        found = Decimal(row.measure(folder, out)).quantize(expected)
        differ |= found != expected
        verdict = "equal" if found == expected else "different"
        print(row.page, row.key, expected, found, verdict, sep="\t", flush=True)
    for page, reason in WITHOUT_ROW.items():
        print(page, "no cheap row", reason, sep="\t")
    return int(differ)


def run(*command: object) -> str:
    """Run a command of this installation, and return its output."""
    program = Path(sys.executable).parent / str(command[0])
    words = [str(program) if program.exists() else str(command[0]), *map(str, command[1:])]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def kneser_ney(dictionary: Path, train: Path, test: Path, order: int, out: Path, *options: str) -> dict[str, float]:
    """Return the scores of n-grams (`llrnn score --json`)."""
    background = f"ngram({order}, folds=0)"
    run("llrnn", "prior", "--dict", dictionary, "--count-text", train, "--background", background, *options,
        "--out", out / "kn")  # fmt: skip
    scores: dict[str, float] = json.loads(
        run("llrnn", "score", "--prior", out / "kn", test, "--json", *(["--open"] if options else []))
    )
    return scores


def hungarian(data: Path, out: Path) -> float:
    shutil.rmtree(out / "compare", ignore_errors=True)
    run("llrnn", "compare", data, "--models", "ngrams", "--out", out / "compare")
    rows = json.loads((out / "compare/result.json").read_text(encoding="utf-8"))["rows"]
    return float(min(rows, key=lambda row: row["valid"])["test"])


@cache
def french_texts(data: Path, out: Path) -> Path:
    """Write the texts of two rows once, and return their folder."""
    run("python", EXAMPLES / "french_morphology/prepare.py", "--ud", data, "--out", out)
    return out / "text"


def french(data: Path, out: Path) -> float:
    text = french_texts(data, out.parents[1] / "french-texts")
    scores = kneser_ney(text.parent / "data-bin/dict.txt", text / "train.txt", text / "test1.txt", 5, out)
    return scores["bits_per_token"] * math.log(2.0)


def open_french(data: Path, out: Path) -> float:
    text, dictionary = french_texts(data, out.parents[1] / "french-texts"), out / "open.txt"
    run("llrnn", "dictionary", "--text", text / "train.txt", "--out", dictionary)
    spelled = ("--open-vocabulary", "characters")
    return kneser_ney(dictionary, text / "train.txt", text / "test2.txt", 4, out, *spelled)["bits_per_character"]


def compounds(data: Path, out: Path) -> float:
    for part, language in (("train", "en"), ("train", "de"), ("test2016", "en"), ("test2016", "de")):
        folder = data if language == "de" else data.parent / "multi30k-en-fr"
        path = folder / f"{part}.tok.{language}.gz"
        (out / f"{part}.{language}").write_bytes(gzip.decompress(path.read_bytes()))
    said = run(
        "python", EXAMPLES / "translation/compound_reach.py", "--aligner", "ibm1",
        "--train-source", out / "train.en", "--train", out / "train.de",
        "--source", out / "test2016.en", "--reference", out / "test2016.de",
    )  # fmt: skip
    _, unseen, _, adjacent, *_ = said.splitlines()[-1].split()  # of the ten best translations
    return 100.0 * int(adjacent) / int(unseen)


def top_words(data: Path, out: Path) -> float:
    """Train a Transformer on the first 300,009 tokens (sentence ends included) of the French novels."""
    for split, most in (("train", 300_000), ("valid", 100_000), ("test", math.inf)):
        write_tokens(data / f"{split}.txt.gz", out / f"{split}.txt", most)
    run("llrnn", "dictionary", "--text", out / "train.txt", "--keep-case", "--min-count", 2, "--out", out / "dict.txt")
    run("llrnn", "prior", "--dict", out / "dict.txt", "--count-text", out / "train.txt", "--suffixes", "--shapes",
        "--set", "words.keep_case=true", "--top-words", 250, "--out", out / "prior")  # fmt: skip
    texts = (out / f"{split}.txt" for split in ("train", "valid", "test"))
    said = run("python", ROOT / "scripts/bench/bench_transformer_lm.py", out / "prior", *texts,
        *"--width 64 --layers 1 --heads 4 --batch 512 --rate 0.008 --warm-up 50".split())  # fmt: skip
    return float(json.loads(said)["test"])


def write_tokens(source: Path, out: Path, most: float) -> None:
    """Write the first sentences of a text that have `most` tokens together, empty lines aside."""
    tokens = 0
    with gzip.open(source, "rt", encoding="utf-8") as lines, out.open("w", encoding="utf-8") as written:
        for line in lines:
            if tokens < most and (words := line.split()):
                written.write(line)
                tokens += len(words) + 1


def characters(data: Path, out: Path) -> float:
    script = ROOT / "research/examples/variable_computation/variable_computation.py"
    run("python", script, "prepare", "--novels", data, "--out", out)
    text = out / "text"
    return kneser_ney(text / "dict.txt", text / "train.txt", text / "test.txt", 5, out)["bits_per_token"]


def flat_labels(data: Path, out: Path) -> float:
    rows = out / "rows.jsonl"
    rows.unlink(missing_ok=True)
    run("python", EXAMPLES / "classification/classification.py", "run", "--data", data.parent, "--set", "clinc150",
        "--model", "flat", "--batch", 64, "--out", rows)  # fmt: skip
    return float(json.loads(rows.read_text(encoding="utf-8"))["test_p_at_1"])


def covered_forms(data: Path, out: Path) -> float:
    said = run("python", EXAMPLES / "semantic_parsing/funql_prepare.py", "--train", data / "funql_train.tsv",
               "--test", data / "funql_test.tsv", "--out", out)  # fmt: skip
    return float(said.splitlines()[-1].split()[-4])  # test: 280 pairs; the grammar accepts 280 of their forms


ROWS: Sequence[Row] = (
    Row("small-texts.md", "unlisted/hungarian/ngrams", "ud-hungarian-szeged", hungarian),
    Row("language-models.md", "kneser-ney/french/test1", "ud-french-gsd-1.4", french),
    Row("characters-and-open-vocabulary.md", "kneser-ney/open-french/test2", "ud-french-gsd-1.4", open_french),
    Row("translation.md", "compounds/10/counts-ibm-model-1/test", "multi30k-en-cs-de", compounds),
    Row("grammars.md", "grammar/geoquery/covered-test-forms", "geoquery", covered_forms),
    Row("trees-and-classification.md", "labels/clinc150/ours-flat/right", "labels", flat_labels),
    Row("training-steps.md", "top-words/250/test", "eltec-fra", top_words),
    Row("other-systems.md", "kneser-ney/variable/test", "eltec-eng", characters),
)
WITHOUT_ROW = {  # page: why
    "terms-and-copying.md": "half an hour for the dialog of a domain, hours for the other tables",
    "speed-and-memory.md": "times differ between machines; `make bench` compares the ratios",
    "negative-results.md": "its figures have the commands of the other pages",
}

if __name__ == "__main__":
    sys.exit(main())
