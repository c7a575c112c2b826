#!/usr/bin/env python3
"""Replace every <unk> of a translation by the source word with the most attention.

    fairseq-generate … --print-alignment soft > generated
    python examples/translation/replace_unknown.py --generated generated --source test.en \\
        --out test.fr [--unknown-to dict.en.txt]

This is the usual method of softmax systems for unknown words (Jean et al. 2015, section 3.4; fairseq's --replace-unk,
which does not work from its generator). With --unknown-to only source words outside that dictionary are candidates, if
the sentence has some.

Sizes: T words of the output, L words of the source. fairseq-generate prints the attention as T + 1 rows of L + 1
weights. The last row and the last column are those of the end of the sentence.
"""

import argparse
import logging
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed
logging.getLogger("fairseq").setLevel(logging.WARNING)  # before the import, which logs

from fairseq_llrnn.cli.places import check_place  # noqa: E402
from fairseq_llrnn.errors import DataError, one_line_errors  # noqa: E402
from fairseq_llrnn.features.dictionary import load_dictionary  # noqa: E402
from fairseq_llrnn.files.atomic_write import write_lines  # noqa: E402
from fairseq_llrnn.files.text_lines import iter_lines, place, shown  # noqa: E402

UNKNOWN = "<unk>"


def replace(
    output: Sequence[str], source: Sequence[str], attention: Sequence[Sequence[float]], known: Collection[str] | None
) -> list[str]:
    """Return the output (T) with source words (L) for its unknown ones; attention (T or more, L or more)."""
    columns = list(range(len(source)))
    if known is not None:
        columns = [column for column in columns if source[column] not in known] or columns
    return [
        source[max(columns, key=row.__getitem__)] if word == UNKNOWN and columns else word
        for word, row in zip(output, attention, strict=False)
    ]


def translations(generated: str, sources: Sequence[str], known: Collection[str] | None) -> list[str]:
    """Return the best hypothesis of every sentence, in order, without unknown words.

    Raises:
        DataError: sentences without hypothesis or attention, or attention to a source of another length.
    """
    outputs: dict[int, list[str]] = {}
    made: dict[int, str] = {}
    for number, line in iter_lines(generated):
        kind, _, rest = line.partition("-")
        name, tab, rest = rest.partition("\t")
        if kind not in ("H", "A") or not tab or not name.isdecimal():
            continue
        sentence = int(name)
        if kind == "H":
            outputs.setdefault(sentence, rest.partition("\t")[2].split())  # the first one is the best
        elif sentence not in made and sentence in outputs and sentence < len(sources):
            source = sources[sentence].split()
            try:
                rows = [[float(share) for share in row.split(",")] for row in rest.split()]
            except ValueError:
                rows = []
            if len(rows) != len(outputs[sentence]) + 1 or any(len(row) != len(source) + 1 for row in rows):
                raise DataError(
                    f"{place(generated, number)}: expected {len(outputs[sentence]) + 1} rows of {len(source) + 1} "
                    "shares, by the words of output and source and their ends, found "
                    f"{shown(rest)}; give the source of this output, and generate with --print-alignment soft"
                )
            made[sentence] = " ".join(replace(outputs[sentence], source, rows, known))
    missing = [n for n in range(len(sources)) if n not in made]
    if missing:
        raise DataError(
            f"{generated}: expected a hypothesis and its attention (lines H- and A-) of {len(sources):,} sentences, "
            f"found none of sentence {missing[0]}; generate with --print-alignment soft and "
            "--required-batch-size-multiple 1"
        )
    return [made[n] for n in range(len(sources))]


@one_line_errors("replace_unknown")
def main() -> None:
    parser = argparse.ArgumentParser(description="Replace <unk> by the source word that has most attention.")
    parser.add_argument("--generated", required=True, metavar="FILE", help="fairseq-generate's output")
    parser.add_argument("--source", required=True, metavar="FILE", help="source text, one sentence per line")
    parser.add_argument(
        "--unknown-to", metavar="DICT", help="dict.txt of the source; only words that it lacks are copied"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="file for the translations, one per line")
    args = parser.parse_args()
    check_place(args.out, f"--out {args.out}")
    known = set(load_dictionary(args.unknown_to).symbols) if args.unknown_to else None
    lines = translations(args.generated, [line for _, line in iter_lines(args.source)], known)
    write_lines(Path(args.out), lines)


if __name__ == "__main__":
    sys.exit(main())
