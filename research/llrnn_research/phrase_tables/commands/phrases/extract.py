"""`llrnn phrases extract`: write the phrase table of a bitext."""

import argparse

import numpy as np

from fairseq_llrnn.alignment.aligners import ALIGNERS, choose_aligner, is_alignable
from fairseq_llrnn.alignment.bitext import Bitext, read_text_bitext
from fairseq_llrnn.alignment.word_links import directed_links, symmetrised
from fairseq_llrnn.cli.places import check_text_place, report_stream, text_output
from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.errors import DataError, OptionError
from llrnn_research.phrase_tables.extraction import LONGEST_PHRASE, phrase_pairs
from llrnn_research.phrase_tables.phrase_table import FACTOR, write_phrase_table

NAME = "phrases extract"
HELP = "align the words of a bitext and write its phrase pairs, in the format of Moses"
EXAMPLES = ("llrnn phrases extract --bitext train.en train.fr --out phrase-table.gz",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    bitext = parser.add_argument_group("the bitext")
    bitext.add_argument(
        "--bitext", nargs=2, required=True, metavar=("SOURCE", "TARGET"),
        help="two tokenised texts, aligned line by line (.gz too)",
    )  # fmt: skip
    bitext.add_argument(
        "--aligner", choices=ALIGNERS, default="auto",
        help="word aligner: eflomal (better, needs installation, random: two runs differ a little), ibm1, or auto: "
        "eflomal if it is installed (default: auto)",
    )  # fmt: skip
    bitext.add_argument(
        "--max-length", type=int, default=LONGEST_PHRASE, metavar="N",
        help=f"words of a phrase, from 1 to {LONGEST_PHRASE} (default: {LONGEST_PHRASE})",
    )  # fmt: skip
    result = parser.add_argument_group("the table")
    result.add_argument(
        "--out", required=True, metavar="FILE",
        help="the phrase table (`-`: stdout), compressed if the name ends in .gz. A line is `source ||| target ||| "
        "φ(s|t) lex(s|t) φ(t|s) lex(t|s) ||| links ||| counts of target, source, both`, in byte order",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if not 1 <= args.max_length <= LONGEST_PHRASE:
        raise OptionError(f"--max-length {args.max_length}: expected a number from 1 to {LONGEST_PHRASE}")
    check_text_place(args.out, args.bitext)
    aligner = choose_aligner(args.aligner)
    read = read_text_bitext(*args.bitext)
    words = read.source_words, read.target_words
    bitext = _usable(read.bitext, words)
    forward, backward = directed_links(bitext, len(words[0]), len(words[1]), aligner)
    links = symmetrised(forward, backward, bitext)
    with text_output(args.out) as file:
        pairs = write_phrase_table(file, phrase_pairs(bitext, links, *words, args.max_length))
    sentences = plural(len(bitext.source), "sentence pair")
    print(
        f"{plural(pairs, 'phrase pair')} of {sentences}, {plural(len(links.source), 'link')}",
        file=report_stream(args.out),
    )
    return 0


def _usable(bitext: Bitext, words: tuple[tuple[str, ...], tuple[str, ...]]) -> Bitext:
    """Return the sentence pairs that can be aligned and written to a table."""
    alignable = is_alignable(bitext)
    clean = np.ones(len(alignable), dtype=bool)
    for side, of_side in zip((bitext.source, bitext.target), words, strict=True):
        has_bar = np.array([FACTOR in word for word in of_side], dtype=bool)
        of_sentence = np.repeat(np.arange(len(side)), side.lengths)
        clean[of_sentence[has_bar[side.tokens]]] = False
    dropped = (
        (~alignable, "a side without words, or with too many"),
        (alignable & ~clean, f"a word with {FACTOR}, Moses' separator of factors"),
    )
    for left, why in dropped:
        if left.any():
            note(f"{plural(int(left.sum()), 'sentence pair')} not used: {why}")
    usable = alignable & clean
    if not usable.any():
        raise DataError(
            f"the bitext: expected sentence pairs with words on both sides, found none among {len(usable):,}; give two "
            "texts, line by line"
        )
    return Bitext(bitext.source.with_sentences(usable), bitext.target.with_sentences(usable))
