"""Options about files that list words, of every command that reads them."""

import argparse
from typing import TYPE_CHECKING

from fairseq_llrnn.files.text_lines import FORMS

if TYPE_CHECKING:
    from fairseq_llrnn.lexicon.options import LexiconOptions


def add_word_files(group: argparse._ArgumentGroup) -> None:
    """Treebanks and lexicons."""
    for option, what in (
        ("conllu", "treebanks (CoNLL-U, .gz too)"),
        ("lexicon", "tables of `llrnn lexicon`, or rows of form, lemma, UPOS, FEATS (TSV, .gz too)"),
    ):
        group.add_argument(f"--{option}", nargs="+", default=[], metavar="FILE", help=what)


def add_lower(group: argparse._ArgumentGroup) -> None:
    """By which rules they are lower-cased."""
    group.add_argument(
        "--lower", metavar="LANG",
        help="the text was lower-cased by the rules of this language: tr or az (İ becomes i, I becomes ı), lt; so are "
        "the words of these files then (all other languages need no LANG)",
    )  # fmt: skip


def add_normalize(group: argparse._ArgumentGroup, what: str) -> None:
    """The Unicode form of words."""
    group.add_argument(
        "--normalize", choices=FORMS,
        help=f"{what}: nfc (é is one character) or nfd (e with a mark behind it), which look alike (default: as they "
        "are)",
    )  # fmt: skip


def add_sources(group: argparse._ArgumentGroup) -> None:
    """All who know words, and how the text spells them."""
    from fairseq_llrnn.cli.prior import guessing, language, morphemes

    add_word_files(group)
    group.add_argument(
        "--unimorph", nargs="+", default=[], metavar="FILE",
        help="lexicons of UniMorph: lemma, form, tags such as N;ACC;PL (TSV, .gz too)",
    )  # fmt: skip
    group.add_argument(
        "--hunspell", nargs="+", default=[], metavar="FILE",
        help="dictionaries of hunspell, FILE.dic with FILE.aff beside it, whose words are lemmas of the forms that "
        "their affix rules make",
    )  # fmt: skip
    group.add_argument(
        "--apertium", metavar="MODE_OR_FILE",
        help="a morphological analyser for the words of --dict or --count-text, through lt-proc: an installed mode, "
        "e.g. fra-cat, or the path of an *.automorf.bin",
    )  # fmt: skip
    language.add_arguments(group)
    group.add_argument(
        "--values", nargs="+", default=[], metavar="FILE",
        help="real-valued features of words (TSV: word, Group:Value, number)",
    )  # fmt: skip
    morphemes.add_arguments(group)
    guessing.add_arguments(group)
    group.add_argument(
        "--keep-case", action="store_true",
        help="the text has capitals: do not lower-case words (those of tables stay as they are in any case)",
    )
    add_lower(group)
    add_normalize(group, "the text is in this Unicode form; so are the words of these files then")


def lexicon_options(args: argparse.Namespace) -> "LexiconOptions":
    """What `add_sources` asks for. Raises OptionError for options that do not go together."""
    from fairseq_llrnn.cli.prior import language, morphemes
    from fairseq_llrnn.lexicon.options import LexiconOptions

    names = "conllu lexicon unimorph hunspell apertium language values morphemes keep_case lower normalize".split()
    return LexiconOptions(
        **{name: getattr(args, name) for name in names}, lemma_floor=language.floor(args),
        morpheme_floor=morphemes.floor(args), guess=args.guess or LexiconOptions.guess,
    )  # fmt: skip
