"""`llrnn prior`: treebanks, lexicons and counts -> the prior directory that training needs."""

import argparse
import sys
import time
from pathlib import Path

from fairseq_llrnn.errors import LLRNNError

NAME = "prior"
HELP = "build the prior: features, signatures and background for a dictionary"
EXAMPLES = (
    "llrnn prior --conllu train.conllu --dict data-bin/dict.txt --background unigram --out data-bin/prior",
    "llrnn prior --conllu train.conllu --shapes --suffixes --dict data-bin/dict.txt --count-text train.txt "
    "--background ngram:3 --out data-bin/trigrams",
    "llrnn prior --conllu train.conllu --dict data-bin/dict.txt --count-text train.txt --open-vocabulary characters "
    "--out data-bin/open",
)
LONG = 10.0  # seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from fairseq_llrnn.cli.prior import options

    options.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from fairseq_llrnn.cli.model_options import need_fairseq
    from fairseq_llrnn.cli.prior import language
    from fairseq_llrnn.cli.prior.fairseq_data import open_model, read_bitext
    from fairseq_llrnn.cli.prior.options import recipe_of
    from fairseq_llrnn.cli.prior.table import print_table, warning
    from fairseq_llrnn.cli.tables import note, say_notes
    from fairseq_llrnn.prior.building import build
    from fairseq_llrnn.prior.directory import check_place, saved_fingerprint
    from fairseq_llrnn.prior.leaves import named_in, read_background

    if language.is_list(getattr(args, "words.language")):
        return 0
    started = time.perf_counter()
    recipe, called = recipe_of(args)
    dictionary = str(recipe.dictionary)
    check_place(Path(args.out))
    if any(named.part.needs_fairseq for _, named in named_in(read_background(recipe.background))):
        need_fairseq()
    try:
        built = build(dictionary, recipe, open_model, read_bitext, called)
    except LLRNNError as error:
        if time.perf_counter() - started >= LONG:  # who waited so long wants to know
            error.args = (f"{error}; nothing was written: {args.out} is as it was",)
        raise
    # before anything is written: a pattern can take too long
    symbols = built.prior.source_symbols
    counted = {kind: count for part in built.prior.parts for kind, count in part.source_words(symbols).items()}
    earlier = saved_fingerprint(Path(args.out))
    built.prior.save(args.out)
    say_notes(built.notes)
    if earlier not in (None, built.prior.fingerprint):
        note(f"{args.out} held another prior; models that were trained with that one need it, and cannot use this one")
    if counted.get("names") == 0:
        print("note: no word of the source dictionary is a name: names need a text with capitals", file=sys.stderr)
    if built.table.completed is not None and (doubt := warning(built.table.completed)) is not None:
        print(doubt, file=sys.stderr)
    print_table(built, counted, dictionary, args.out, time.perf_counter() - started)
    return 0
