"""`llrnn rare-words restore`: replace annotated unknown words in translations by real words."""

import argparse
import os
from pathlib import Path

from fairseq_llrnn.cli.places import STDIN, check_text_place, text_lines, text_output
from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.evidence.rules import read_evidence_map
from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.files.text_lines import iter_sentences
from llrnn_research.rare_words.annotations import restored
from llrnn_research.rare_words.commands.rare_words import SOURCE_WORDS, TRANSLATIONS

NAME = "rare-words restore"
HELP = "replace annotated unknown words of translations by translations or copies of their source words"
EXAMPLES = ("llrnn rare-words restore --data annotated --source test.en < test.fr > restored.fr",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}; the translations come on stdin, a sentence a line"
    inputs = parser.add_argument_group("the input")
    inputs.add_argument(
        "--data", required=True, metavar="DIR", help="the folder of `llrnn rare-words annotate`"
    )
    inputs.add_argument(
        "--source", required=True, metavar="FILE",
        help="the source text before annotation, a sentence a line",
    )  # fmt: skip
    result = parser.add_argument_group("the result")
    result.add_argument("--out", metavar="FILE", help="the restored translations (default, or `-`: stdout)")


def run(args: argparse.Namespace) -> int:
    check_text_place(args.out, [args.source, STDIN])
    folder = Path(args.data)
    if not os.path.isfile(folder / SOURCE_WORDS):
        raise OptionError(
            f"--data {args.data}: expected a folder of `llrnn rare-words annotate`, found no {SOURCE_WORDS} in it; "
            "give its --destdir"
        )
    vocabulary = frozenset(line for _, line in iter_sentences(folder / SOURCE_WORDS))
    rows = any(line.strip() for _, line in iter_sentences(folder / TRANSLATIONS))  # a text may have no translations
    translations = read_evidence_map(folder / TRANSLATIONS, header=()) if rows else {}
    sources = [line.split() for _, line in iter_sentences(args.source)]
    outputs = [line.split() for line in text_lines(STDIN)]
    if len(outputs) != len(sources):
        raise DataError(
            f"stdin: expected {len(sources):,} lines, as in {args.source}, found {len(outputs):,}; give the "
            "translations of this text, line by line"
        )
    without = 0
    with text_output(args.out) as file:
        for output, source in zip(outputs, sources, strict=True):
            words = restored(output, source, vocabulary, translations)
            without += words.count(UNK)
            file.write(" ".join(words) + "\n")
    if without:
        note(f"{plural(without, 'unknown word')} of the translations have no source word, and stay {UNK}")
    return 0
