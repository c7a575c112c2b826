"""`llrnn text`: write the sentences of treebanks as text."""

import argparse

from fairseq_llrnn.cli.places import check_text_place, text_output
from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.files.text_lines import FORMS
from fairseq_llrnn.lexicon.casing import language_of
from fairseq_llrnn.lexicon.readers.conllu import conllu_lines

NAME = "text"
HELP = "write the words of treebanks as text, one sentence per line"
EXAMPLES = (
    "llrnn text --conllu train.conllu --lower > treebank.txt",
    "llrnn text --conllu train.conllu --words surface --lower tr --out surface.txt",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sentences = parser.add_argument_group("the sentences")
    sentences.add_argument("--conllu", nargs="+", required=True, metavar="FILE", help="treebanks (CoNLL-U, .gz too)")
    sentences.add_argument(
        "--words", choices=("syntactic", "surface"), default="syntactic",
        help="syntactic: the annotated words, as in `llrnn prior --conllu` (French `à le`). surface: the written words "
        "(`au`). Blanks within a word become `_` (default: syntactic)",
    )  # fmt: skip
    result = parser.add_argument_group("the text")
    result.add_argument(
        "--lower", nargs="?", const="", metavar="LANG",
        help="lower-case the words. LANG is needed only for the rules of tr or az (İ becomes i, I becomes ı) and lt "
        "(default: keep the case, for `llrnn prior --set words.keep_case=true`)",
    )  # fmt: skip
    result.add_argument(
        "--normalize", choices=FORMS,
        help="convert the words to a Unicode form: nfc (é is one character) or nfd (e and a combining mark), which "
        "look the same (default: unchanged)",
    )  # fmt: skip
    result.add_argument("--out", metavar="FILE", help="file to write (default, or `-`: stdout)")


def run(args: argparse.Namespace) -> int:
    language_of(args.lower)
    check_text_place(args.out, args.conllu)
    sentences, words = 0, 0
    with text_output(args.out) as file:
        for line in conllu_lines(args.conllu, args.words, args.lower, args.normalize):
            sentences += 1
            words += len(line)
            file.write(" ".join(line) + "\n")
    note(f"{plural(sentences, 'sentence')}, {plural(words, 'word')}")
    return 0
