"""The options of `llrnn prior`: those of the recipe (prior/recipe.py), and what only a command has."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.settings_options import add_options, add_set, overridden
from fairseq_llrnn.errors import OptionError

if TYPE_CHECKING:
    from fairseq_llrnn.prior.recipe import Recipe

OF_A_SOFTMAX = ("softmax", "dictionary", "out", "labels")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from fairseq_llrnn.prior.recipe import Recipe

    group = parser.add_argument_group("recipe and result")
    group.add_argument(
        "--recipe", metavar="FILE",
        help="TOML file that says what follows, by the keys of docs/options.md; options override it",
    )  # fmt: skip
    add_set(group)
    group.add_argument("--out", metavar="DIR", help="where the prior goes, e.g. data-bin/prior")
    group.add_argument(
        "--softmax", action="store_true",
        help="the special case: every word its own and only feature, uniform background (a plain softmax, to compare)",
    )  # fmt: skip
    add_options(parser, Recipe)


def recipe_of(args: argparse.Namespace) -> "tuple[Recipe, Callable[[str], str]]":
    """What the command line and its recipe say, and where each key stands: an option, or the file.

    Raises:
        OptionError, DataError: there is no such key or value, or no recipe.
    """
    from fairseq_llrnn.prior.recipe import Recipe
    from fairseq_llrnn.prior.recipe_file import read_recipe
    from fairseq_llrnn.settings import checked, plain_values

    if args.out is None:
        raise OptionError("--out: expected where the prior goes, found nothing; add --out DIR")
    begin = {}
    if args.softmax:
        _refuse_beside_softmax(args)
        begin = plain_values(Recipe.softmax())[0]
    elif args.recipe is not None:
        begin = plain_values(read_recipe(args.recipe))[0]
    values, option = overridden(begin, args, Recipe)
    where = f"--recipe {args.recipe}: " if args.recipe is not None else ""
    recipe = checked(Recipe, values, called := lambda name: option(name) or f"{where}{name}")
    if recipe.dictionary is None:
        raise OptionError("--dict: expected the dict.txt of fairseq-preprocess, found nothing; add --dict FILE")
    return recipe, called


def _refuse_beside_softmax(args: argparse.Namespace) -> None:
    from fairseq_llrnn.prior.recipe import Recipe
    from fairseq_llrnn.settings import keys

    options = {key.name: key.option.name for key in keys(Recipe) if key.option is not None}
    for name, value in vars(args).items():
        if name not in OF_A_SOFTMAX and value not in (None, False, []):
            raise OptionError(
                f"--softmax: a softmax takes no other option, found {options.get(name, f'--{name}')} beside it; leave "
                "one of them out"
            )
