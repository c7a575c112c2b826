"""Options about files that list words, of every command that reads them."""

import argparse


def add_word_files(group: argparse._ArgumentGroup) -> None:
    """Treebanks and lexicons."""
    for option, what in (
        ("conllu", "treebanks (CoNLL-U, .gz too)"),
        ("lexicon", "lexicons: form, lemma, UPOS, FEATS (TSV, .gz too)"),
        ("unimorph", "lexicons of UniMorph: lemma, form, tags such as N;ACC;PL (TSV, .gz too)"),
    ):
        group.add_argument(f"--{option}", nargs="+", default=[], metavar="FILE", help=what)


def add_lower(group: argparse._ArgumentGroup) -> None:
    """By which rules they are lower-cased."""
    group.add_argument(
        "--lower", metavar="LANG",
        help="the text was lower-cased by the rules of this language: tr or az (İ becomes i, I becomes ı), lt; so are "
        "the words of these files then (all other languages need no LANG)",
    )  # fmt: skip
