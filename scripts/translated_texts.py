"""Inputs of scripts about lexical translations: a prior with translations, a text and its translation."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # if the package is not installed

from fairseq_llrnn.errors import DataError, LLRNNError, OptionError
from fairseq_llrnn.files.text_lines import check_as_long, iter_lines
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

Pairs = list[tuple[list[str], list[str]]]


def translations_of(prior: Prior) -> LexicalPart:
    """Return the translations of a prior. Raises OptionError if it has none."""
    lexical = prior.find(LexicalPart)
    if lexical is None:
        raise OptionError("--prior: expected a prior with lexical translations, found none; see --lexical-translation")
    return lexical


def read_pairs(source: str, reference: str) -> Pairs:
    """Return sentences and their translations. Raises DataError if there are none, or if one text is longer."""
    sides = [[line.split() for _, line in iter_lines(path)] for path in (source, reference)]
    check_as_long(source, reference, *map(len, sides))
    if not sides[0]:
        raise DataError(f"{source}: expected sentences, found none; give another text")
    return list(zip(*sides, strict=True))


def print_table(
    name: str,
    description: str,
    texts: Mapping[str, str],
    table: Callable[[Prior, Pairs, argparse.Namespace], str],
) -> int:
    """Run the whole `main` of a script.

    Args:
        name: of the script.
        texts: its options besides --prior, --source and --reference, with their help.
        table: returns the table of a prior, a text with its translation, and `texts`.
    """
    parser = argparse.ArgumentParser(description=description)
    for option, what in (
        ("prior", "folder of `llrnn prior --lexical-translation`"),
        ("source", "sentences, in the words or pieces of the prior"),
        ("reference", "their translations"),
        *texts.items(),
    ):
        parser.add_argument(f"--{option}", required=True, help=what)
    args = parser.parse_args()
    try:
        print(table(Prior.load(args.prior), read_pairs(args.source, args.reference), args))
    except LLRNNError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 2
    return 0
