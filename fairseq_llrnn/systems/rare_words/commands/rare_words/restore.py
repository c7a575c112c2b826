"""`llrnn rare-words restore`: translations of an annotated model, with real words for annotated unknown ones."""

import argparse
import os
from pathlib import Path

from fairseq_llrnn.cli.places import STDIN, check_text_place, stdin_lines, text_output
from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.evidence.rules import read_evidence_map
from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.files.text_lines import iter_sentences
from fairseq_llrnn.systems.rare_words.annotations import restored
from fairseq_llrnn.systems.rare_words.commands.rare_words import SOURCE_WORDS, TRANSLATIONS

NAME = "rare-words restore"
HELP = "replace annotated unknown words of translations by translations of their source words, or copy these"
EXAMPLES = ("llrnn rare-words restore --data annotated --source test.en < test.fr > restored.fr",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}; the translations come on stdin, a sentence a line"
    inputs = parser.add_argument_group("what is restored")
    inputs.add_argument(
        "--data", required=True, metavar="DIR", help="the folder that `llrnn rare-words annotate` wrote"
    )
    inputs.add_argument(
        "--source", required=True, metavar="FILE",
        help="what was translated, a sentence a line, as it was before it was annotated",
    )  # fmt: skip
    result = parser.add_argument_group("the result")
    result.add_argument("--out", metavar="FILE", help="where the translations go (default, or `-`: stdout)")


def run(args: argparse.Namespace) -> int:
    check_text_place(args.out, [args.source, STDIN])
    folder = Path(args.data)
    if not os.path.isfile(folder / SOURCE_WORDS):
        raise OptionError(
            f"--data {args.data}: expected a folder that `llrnn rare-words annotate` wrote, found no {SOURCE_WORDS} "
            "there; give its --destdir"
        )
    vocabulary = frozenset(line for _, line in iter_sentences(folder / SOURCE_WORDS))
    rows = any(line.strip() for _, line in iter_sentences(folder / TRANSLATIONS))  # a text may have no translations
    translations = read_evidence_map(folder / TRANSLATIONS, header=()) if rows else {}
    sources = [line.split() for _, line in iter_sentences(args.source)]
    outputs = [line.split() for line in stdin_lines()]
    if len(outputs) != len(sources):
        raise DataError(
            f"stdin: expected as many lines as in {args.source}, {len(sources):,}, found {len(outputs):,}; give the "
            "translations of this text, line by line"
        )
    without = 0
    with text_output(args.out) as file:
        for output, source in zip(outputs, sources, strict=True):
            words = restored(output, source, vocabulary, translations)
            without += words.count(UNK)
            file.write(" ".join(words) + "\n")
    if without:
        note(f"{plural(without, 'unknown word')} of the translations point to no word of the source, and stay {UNK}")
    return 0
