"""`llrnn text`: a treebank's sentences as the text that a model is trained on."""

import argparse
from collections.abc import Iterator

from fairseq_llrnn.cli.places import check_text_place, text_output
from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.files.text_lines import FORMS, ReadCount
from fairseq_llrnn.lexicon.casing import language_of
from fairseq_llrnn.lexicon.readers.conllu import SURFACE_ROWS, in_one_word, iter_conllu_sentences, surface_words

NAME = "text"
PARTS = "written together with others"
HELP = "write the words of treebanks as text, a sentence a line"
EXAMPLES = (
    "llrnn text --conllu train.conllu --lower > treebank.txt",
    "llrnn text --conllu train.conllu --words surface --lower tr --out surface.txt",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sentences = parser.add_argument_group("the sentences")
    sentences.add_argument("--conllu", nargs="+", required=True, metavar="FILE", help="treebanks (CoNLL-U, .gz too)")
    sentences.add_argument(
        "--words", choices=("syntactic", "surface"), default="syntactic",
        help="syntactic: the words that treebanks annotate, and that `llrnn prior --conllu` gives features to (French "
        "`à le`); surface: as they are written (`au`). Blanks within a word become `_` (default: syntactic)",
    )  # fmt: skip
    result = parser.add_argument_group("the text")
    result.add_argument(
        "--lower", nargs="?", const="", metavar="LANG",
        help="lower-case the words, by the rules of a language: tr or az (İ becomes i, I becomes ı), lt; all others "
        "need no LANG (default: the words keep their case, for `llrnn prior --set words.keep_case=true`)",
    )  # fmt: skip
    result.add_argument(
        "--normalize", choices=FORMS,
        help="write the words in this Unicode form: nfc (é is one character) or nfd (e with a mark behind it), which "
        "look alike (default: as they are)",
    )  # fmt: skip
    result.add_argument("--out", metavar="FILE", help="where the text goes (default, or `-`: stdout)")


def run(args: argparse.Namespace) -> int:
    language_of(args.lower)
    check_text_place(args.out, args.conllu)
    sentences, words = 0, 0
    with text_output(args.out) as file:
        for line in _lines(args.conllu, args.words, args.lower, args.normalize):
            sentences += 1
            words += len(line)
            file.write(" ".join(line) + "\n")
    note(f"{plural(sentences, 'sentence')}, {plural(words, 'word')}")
    return 0


def _lines(paths: list[str], kind: str, casing: str | None, form: str | None) -> Iterator[list[str]]:
    """The words of each sentence. `casing`: None, or a code of a language, or "" for none in particular."""
    for path in paths:
        count = ReadCount(path, "rows", form)
        for sentence in iter_conllu_sentences(count, casing is not None, language_of(casing)):
            words = surface_words(sentence, path) if kind == "surface" else [token.form for token in sentence.words]
            count.read += len(words)
            others = len(sentence.words) + len(sentence.spans) - len(words)
            count.left_out[PARTS if kind == "surface" else SURFACE_ROWS] += others
            yield [in_one_word(word) for word in words]
