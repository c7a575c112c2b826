"""Extract a part of the ELTeC novels with a small dictionary: the data of docs/results/small-texts.md.

    python examples/languages/part_of_novels.py ELTEC_ENG OUT --every 12 --words 10000

ELTEC_ENG has train.txt.gz, valid.txt.gz and test.txt.gz, tokenised, one sentence per line. OUT gets
{train,valid,test}.txt, lower-cased, and dict.txt: every N-th sentence of train, every 4th of valid and every 10th of
test. Words outside the most frequent ones are <unk>.
"""

import argparse
import gzip
from collections import Counter
from pathlib import Path

LONGEST = 200  # words of a sentence


def sentences(path: Path, every: int) -> list[list[str]]:
    """Yield every `every`-th sentence that is neither empty nor very long, lower-cased."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        found = (line.lower().split() for line in stream)
        kept = [words for words in found if 0 < len(words) <= LONGEST]
    return kept[every - 1 :: every]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("novels", type=Path, metavar="ELTEC_ENG")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--every", type=int, default=12, metavar="N", help="of train (default: 12)")
    parser.add_argument("--words", type=int, default=10_000, metavar="V", help="types (default: 10000)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    parts = {"train": args.every, "valid": 4, "test": 10}
    texts = {split: sentences(args.novels / f"{split}.txt.gz", every) for split, every in parts.items()}
    counts = Counter(word for words in texts["train"] for word in words)
    kept = sorted(counts, key=lambda word: (-counts[word], word))[: args.words]
    (args.out / "dict.txt").write_text("".join(f"{word} {counts[word]}\n" for word in kept), encoding="utf-8")
    known = set(kept)
    for split, text in texts.items():
        lines = [" ".join(word if word in known else "<unk>" for word in words) for words in text]
        (args.out / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        tokens, unknown = sum(map(len, text)), sum(word not in known for words in text for word in words)
        print(f"{split}: {len(text):,} sentences, {tokens:,} words, {unknown / tokens:.1%} of them unknown")


if __name__ == "__main__":
    main()
