"""`llrnn prior`: build the prior, a folder that training needs, from treebanks, lexicons and counts."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fairseq_llrnn.cli.settings_options import add_options, add_set, overridden
from fairseq_llrnn.cli.tables import note
from fairseq_llrnn.errors import LLRNNError, OptionError
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.prior.recipe_file import read_recipe
from fairseq_llrnn.settings import checked, keys, plain_values

NAME = "prior"
HELP = "build the prior: features, signatures and background for a dictionary"
EXAMPLES = (
    "llrnn prior --conllu train.conllu --dict data-bin/dict.txt --count-text train.txt --out data-bin/prior",
    "llrnn prior --conllu train.conllu --shapes --suffixes --dict data-bin/dict.txt --count-text train.txt "
    "--background ngram:3 --out data-bin/trigrams",
    "llrnn prior --conllu train.conllu --dict data-bin/dict.txt --count-text train.txt --open-vocabulary characters "
    "--out data-bin/open",
)
LONG = 10.0  # seconds
WITH_SOFTMAX = ("softmax", "dictionary", "out", "labels", "pieces")  # options that --softmax allows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("recipe and result")
    group.add_argument(
        "--recipe", metavar="FILE",
        help="TOML file with the keys of docs/options/llrnn-prior.md; options override it",
    )  # fmt: skip
    add_set(group)
    group.add_argument("--out", metavar="DIR", help="folder to write, e.g. data-bin/prior")
    group.add_argument(
        "--softmax", action="store_true",
        help="build a plain softmax for comparison: each word is its own and only feature, the background is uniform. "
        "Add --pieces for a dictionary of pieces: figures per word then count words",
    )  # fmt: skip
    add_options(parser, Recipe)


def key_of(option: str) -> str | None:
    """Return the key of the recipe that has the name of an unknown option, or None if there is none."""
    name = option.replace("-", "_")
    return next((key.name for key in keys(Recipe) if key.name.rpartition(".")[2] == name), None)


def run(args: argparse.Namespace) -> int:
    from fairseq_llrnn.cli.model_options import need_fairseq
    from fairseq_llrnn.cli.prior import language
    from fairseq_llrnn.cli.prior.fairseq_data import open_model
    from fairseq_llrnn.cli.prior.summary import print_table, warning
    from fairseq_llrnn.cli.tables import say_notes
    from fairseq_llrnn.prior.background_terms import named_in, read_background
    from fairseq_llrnn.prior.building import build
    from fairseq_llrnn.prior.directory import check_place, saved_fingerprint

    if language.is_list(getattr(args, "words.language")):
        return 0
    started = time.perf_counter()
    recipe, option_name = recipe_of(args)
    dictionary = str(recipe.dictionary)
    check_place(Path(args.out))
    if any(named.part.needs_fairseq for _, named in named_in(read_background(recipe.background))):
        need_fairseq()
    try:
        built = build(dictionary, recipe, open_model, option_name)
    except LLRNNError as error:
        if time.perf_counter() - started >= LONG:
            error.args = (f"{error}; nothing was written: {args.out} is unchanged",)
        raise
    # before anything is written: matching a pattern can take too long
    evidence = built.prior.find(EvidencePart)
    counted = {} if evidence is None else evidence.source_words(built.prior.source_symbols)
    earlier = saved_fingerprint(Path(args.out))
    built.prior.save(args.out)
    say_notes(built.notes)
    if earlier not in (None, built.prior.fingerprint):
        note(f"replaced another prior in {args.out}; models trained with that prior cannot use this one")
    if counted.get("names") == 0:
        note("the source dictionary has no names; recognising names needs a text with capitals")
    if built.table.completed is not None and (doubt := warning(built.table.completed)) is not None:
        print(doubt, file=sys.stderr)
    print_table(built, counted, dictionary, args.out, time.perf_counter() - started)
    return 0


def recipe_of(args: argparse.Namespace) -> tuple[Recipe, Callable[[str], str]]:
    """Return the recipe of the command line, and a function from a key to its option, or to its place in the file.

    Raises:
        OptionError, DataError: an unknown key, a wrong value, or an unreadable recipe.
    """
    if args.out is None:
        raise OptionError("--out is missing: add --out DIR, the folder to write")
    begin = {}
    if args.softmax:
        _check_with_softmax(args)
        begin = plain_values(Recipe.softmax())[0]
        begin |= {} if args.pieces is None else {"features": ()}  # also none of pieces
    elif args.recipe is not None:
        begin = plain_values(read_recipe(args.recipe))[0]
    values, option = overridden(begin, args, Recipe)
    place = f"--recipe {args.recipe}: " if args.recipe is not None else ""
    recipe = checked(Recipe, values, option_name := lambda name: option(name) or f"{place}{name}")
    if recipe.dictionary is None:
        raise OptionError("--dict: expected the dict.txt of fairseq-preprocess, found nothing; add --dict FILE")
    return recipe, option_name


def _check_with_softmax(args: argparse.Namespace) -> None:
    """Drop --count-text with a note. Raises OptionError for an option that would add features or a background."""
    if args.text:
        note("--count-text is ignored: a prior of --softmax needs no word counts")
        args.text = None
    options = {key.name: key.option.name for key in keys(Recipe) if key.option is not None}
    for name, value in vars(args).items():
        if name not in WITH_SOFTMAX and value not in (None, False, []):
            option = options.get(name, f"--{name}")
            raise OptionError(
                f"{option}: --softmax takes only --dict, --out, --labels and --pieces; remove {option}, or --softmax"
            )
