"""The benefit of a lexicon by the size of the text: bits per character of nested parts of novels.

    growth.py --novels ELTEC_FRA --lexicon LEXICON --out OUT --words 100000 1000000 [--seeds 1 2 3] [--rows ROW …]
    growth.py --out OUT [--keep growth.json] [--picture growth.png]          the table of finished rows

ELTEC_FRA has {train,valid,test}.txt.gz, tokenised, one sentence per line. OUT/WORDS/text gets every n-th sentence of
train, with about WORDS words, and the same parts of valid and test at every size. A row is a system of open_systems.py
with or without the lexicon. OUT/WORDS/ROW-SEED has its model and result. Finished rows are skipped.
"""

import argparse
import gzip
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what examples share

from open_systems import Sizes
from open_vocabulary import compare, run

from fairseq_llrnn.errors import OptionError, one_line_errors

Fact = dict[str, Any]  # row, words, seed, seconds, and bits per character of valid and test
LONGEST = 100  # words of a sentence
HELD_OUT = 30_000  # words of each held-out text


@dataclass(frozen=True)
class Row:
    """A line of the curve."""

    system: str  # of open_systems.SYSTEMS
    what: str
    lexicon: bool = False


ROWS = {
    "words": Row("open", "words by suffixes and shapes, open vocabulary"),
    "words-lexicon": Row("open", "… and by a lexicon", lexicon=True),
    "pieces-features": Row("features", "pieces (BPE) with features and a unigram"),
    "pieces": Row("pieces", "pieces (BPE), softmax"),
}


def sizes_of(words: int, seed: int) -> Sizes:
    """Return settings by size, the same for all rows and not tuned."""
    known = Sizes(top_words="auto", seed=seed)
    if words <= 200_000:
        return replace(known, passes=16, dropout=0.4, pieces=2000)
    if words <= 2_000_000:
        return replace(known, passes=5, dropout=0.2, pieces=8000)
    return replace(known, passes=2, dropout=0.1, pieces=16_000, least=5)


def part(path: Path, words: int) -> list[str]:
    """Return every n-th sentence of a text, with about so many words in total."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        found = (line.split() for line in stream)
        lines = [" ".join(tokens) for tokens in found if 0 < len(tokens) <= LONGEST]
    there = sum(line.count(" ") + 1 for line in lines)
    if there < words:
        print(f"note: {path} has {there:,} words, not {words:,}: all are taken", file=sys.stderr)
    every = max(1, round(there / words))
    return lines[every - 1 :: every]


def prepare(novels: Path, words: int, place: Path) -> None:
    """Write the texts of one size to `place`, if they are missing."""
    if (place / "test2.txt").exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    test = part(novels / "test.txt.gz", 2 * HELD_OUT)
    texts = {"train": part(novels / "train.txt.gz", words), "valid": part(novels / "valid.txt.gz", HELD_OUT)}
    for split, lines in (texts | {"test1": test[::2], "test2": test[1::2]}).items():
        (place / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(out: Path, words: int, name: str, seed: int, lexicon: Sequence[str], changes: Mapping[str, Any]) -> None:
    """Train and score one row at one size, and write OUT/WORDS/ROW-SEED/facts.json."""
    row, sizes = ROWS[name], replace(sizes_of(words, seed), **changes)
    label = "".join(f"+{key}={value}" for key, value in changes.items())
    place = out / str(words) / f"{name}{label}-{seed}"
    if (place / "facts.json").exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    compare([row.system], out / str(words) / "text", place, lexicon if row.lexicon else [], sizes, run)
    found = json.loads((place / row.system / "result.json").read_text(encoding="utf-8"))
    facts: Fact = {"row": name + label, "words": words, "seed": seed, "seconds": round(time.monotonic() - began)}
    facts["valid"] = found["valid"]["bits_per_character"]
    tests = [found["test1"], found["test2"]]
    facts["test"] = sum(t["bits"] for t in tests) / sum(t["characters"] for t in tests)
    (place / "facts.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
    print(json.dumps(facts), flush=True)


def table(facts: Sequence[Fact]) -> str:
    """Return bits per character of validation and test text by row and size, means over seeds."""
    sizes = sorted({fact["words"] for fact in facts})
    lines = ["| row | " + " | ".join(f"{size:,} words" for size in sizes) + " |", "|---|" + "---:|" * len(sizes)]
    for name, by_size in _by_row(facts).items():
        cells = [_cell(by_size[size]) if size in by_size else "" for size in sizes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(seeds: Sequence[Fact]) -> str:
    return " / ".join(f"{mean(fact[text] for fact in seeds):.3f}" for text in ("valid", "test")) + f" ({len(seeds)})"


def _by_row(facts: Sequence[Fact]) -> dict[str, dict[int, list[Fact]]]:
    found: dict[str, dict[int, list[Fact]]] = {}
    for fact in facts:
        found.setdefault(fact["row"], {}).setdefault(fact["words"], []).append(fact)
    return found


def draw(facts: Sequence[Fact], path: Path) -> None:
    """Draw test bits per character against words of training text, for the sizes of each row that are best on
    validation.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6.4, 4.2))
    for name, row in ROWS.items():
        tried = {label: sizes for label, sizes in _by_row(facts).items() if label.split("+")[0] == name}
        sizes = sorted({size for by_size in tried.values() for size in by_size})
        seeds = [
            min((t[size] for t in tried.values() if size in t), key=lambda found: mean(f["valid"] for f in found))
            for size in sizes
        ]
        axis.plot(sizes, [mean(f["test"] for f in found) for found in seeds], ".-", label=f"{name}: {row.what}")
    axis.set(xscale="log", xlabel="words of training text", ylabel="bits per character, test")
    axis.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    figure.savefig(path, dpi=150, bbox_inches="tight")


def change_of(word: str) -> tuple[str, Any]:
    """Parse SIZE=VALUE. Raises OptionError."""
    name, _, value = word.partition("=")
    kinds = {field.name: type(getattr(Sizes(), field.name)) for field in fields(Sizes)}
    try:
        return name, kinds[name](value)
    except (KeyError, ValueError):
        known = ", ".join(f"{name} ({kind.__name__})" for name, kind in kinds.items())
        raise OptionError(f"--set {word}: expected SIZE=VALUE, SIZE one of {known}") from None


@one_line_errors("growth.py")
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--novels", type=Path, help="folder of the texts; without it, only the table is printed")
    parser.add_argument("--lexicon", nargs="+", default=[], help="of the row words-lexicon")
    parser.add_argument("--words", type=int, nargs="+", default=[100_000], help="of the training texts")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--set", nargs="+", default=[], metavar="SIZE=VALUE", help="of Sizes, instead of `sizes_of`")
    parser.add_argument("--keep", type=Path, help="write the facts there, as JSON")
    parser.add_argument("--picture", type=Path, help="draw the curve")
    args = parser.parse_args()
    return act(args)


def act(args: argparse.Namespace) -> int:
    """Run the command line. Raises LLRNNError."""
    changes = dict(change_of(word) for word in args.set)
    if args.novels is not None:
        for words in args.words:
            prepare(args.novels, words, args.out / str(words) / "text")
            for seed in args.seeds:
                for name in args.rows:
                    measure(args.out, words, name, seed, ["--lexicon", *args.lexicon], changes)
    facts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(args.out.glob("*/*/facts.json"))]
    if args.keep:
        args.keep.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    if args.picture:
        draw(facts, args.picture)
    print(table(facts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
