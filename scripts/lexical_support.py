#!/usr/bin/env python3
"""Measure how far lexical translations support the words of a reference, by their frequency in training.

    python scripts/lexical_support.py --prior data/prior --source val.en --reference val.fr --train train.fr

A word of the reference has support if one of its source words lists it as a translation. b(C; x) is then (1−λ) b₀(x) +
λ · mean t(x | s), and (1−λ) b₀(x) otherwise (backgrounds/lexical.py; λ is that of the prior, which a model may change
if it is learned). Texts are in the words, or pieces, of the prior's dictionaries. Words outside the dictionary, and
forbidden words, are left out.
"""

import sys
from collections import Counter

import numpy as np
from translated_texts import Pairs, print_table, translations_of

from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.prior.prior import Prior

BUCKETS = ((0, 0), (1, 1), (2, 5), (6, 20), (21, 100), (101, None))


def support(prior: Prior, pairs: Pairs, counts: Counter[str]) -> str:
    """Return a table with a row for each bucket of counts. Raises OptionError for a prior without translations."""
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
    return print_table(
        "lexical_support",
        "The support of a reference by lexical translations, by frequency.",
        {"train": "the target side of the training text, to count its words"},
        lambda prior, pairs, args: support(
            prior, pairs, Counter(word for _, line in iter_lines(args.train) for word in line.split())
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
