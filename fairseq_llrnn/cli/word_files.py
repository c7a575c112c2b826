"""Options about files that list words, of every command that reads them."""

import argparse

from fairseq_llrnn.files.text_lines import FORMS


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
