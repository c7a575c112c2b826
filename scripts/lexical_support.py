#!/usr/bin/env python3
"""How far lexical translations support the words of a reference, by how often training has them.

    python scripts/lexical_support.py --prior data/prior --source val.en --reference val.fr --train train.fr

A word of the reference has support where one of its source words lists it as a translation; b(C; x) is then
(1−λ) b₀(x) + λ · mean t(x | s), and (1−λ) b₀(x) where none does (backgrounds/lexical.py; λ as the prior has it, which a
model may change where it is learned). Texts are in the words, or pieces, of the prior's dictionaries. Words that the
dictionary lacks, and those that the background forbids, are left out.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also where the package is not installed

from fairseq_llrnn.errors import DataError, LLRNNError, OptionError
from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.prior.parts import LexicalPart
from fairseq_llrnn.prior.prior import Prior

BUCKETS = ((0, 0), (1, 1), (2, 5), (6, 20), (21, 100), (101, None))


def translations_of(prior: Prior) -> LexicalPart:
    """Raises OptionError for a prior without translations."""
    lexical = prior.find(LexicalPart)
    if lexical is None:
        raise OptionError("--prior: expected a prior with lexical translations, found none; see --lexical-translation")
    return lexical


def read_pairs(source: str, reference: str) -> list[tuple[list[str], list[str]]]:
    """Sentences and their translations. Raises DataError where one text is longer."""
    sides = [[line.split() for _, line in iter_lines(path)] for path in (source, reference)]
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{reference}: expected as many lines as in {source}, {len(sides[0]):,}, found {len(sides[1]):,}; give a "
            "text and its translation, line by line"
        )
    return list(zip(*sides, strict=True))


def support(prior: Prior, pairs: list[tuple[list[str], list[str]]], counts: Counter[str]) -> str:
    """A table with a row for each bucket of counts. Raises OptionError for a prior without translations."""
    lexical = translations_of(prior)
    table = lexical.word_table
    sources = {word: i for i, word in enumerate(prior.source_symbols)}
    targets = {word: i for i, word in enumerate(prior.symbols)}
    root = np.exp(prior.log_weights) / np.exp(prior.log_weights).sum()
    rows: dict[int, dict[int, float]] = {}
    found: dict[tuple[int, int | None], list[tuple[float, float]]] = {bucket: [] for bucket in BUCKETS}
    for source, reference in pairs:
        ids = [sources.get(word, sources[UNK]) for word in source]
        for i in ids:
            if i not in rows:
                rows[i] = dict(table.row(i))
        said = [rows[i] for i in ids]
        for word in reference:
            x = targets.get(word)
            if x is None or root[x] == 0.0:
                continue
            bucket = next((a, b) for a, b in BUCKETS if a <= counts[word] and (b is None or counts[word] <= b))
            mean = sum(row.get(x, 0.0) for row in said) / max(1, len(said))
            found[bucket].append((mean, -np.log2((1 - lexical.weight) * root[x] + lexical.weight * mean)))
    lines = [f"{'seen in training':<16} {'words':>8} {'no support':>11} {'bits of b(C; x)':>16}"]
    for (least, most), of_bucket in found.items():
        if of_bucket:
            name = f"> {least - 1}" if most is None else str(least) if least == most else f"{least}–{most}"
            none = sum(mean == 0.0 for mean, _ in of_bucket) / len(of_bucket)
            bits = sum(bits for _, bits in of_bucket) / len(of_bucket)
            lines.append(f"{name:<16} {len(of_bucket):>8,} {none:>11.1%} {bits:>16.2f}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="The support of a reference by lexical translations, by frequency.")
    for name, what in (
        ("prior", "directory of `llrnn prior --lexical-translation`"),
        ("source", "sentences, in the words or pieces of the prior"),
        ("reference", "their translations"),
        ("train", "the target side of the training text, to count its words"),
    ):
        parser.add_argument(f"--{name}", required=True, help=what)
    args = parser.parse_args()
    try:
        pairs = read_pairs(args.source, args.reference)
        counts = Counter(word for _, line in iter_lines(args.train) for word in line.split())
        print(support(Prior.load(args.prior), pairs, counts))
    except LLRNNError as error:
        print(f"lexical_support: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
