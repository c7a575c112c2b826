"""What the tables of experiments tell `llrnn prior` is what it takes: rows that no test trains, too."""

import argparse
import shlex
from collections.abc import Iterator, Sequence

import pytest
from example_modules import EXAMPLES, OF_RESEARCH, load

from fairseq_llrnn.cli.main import Parser
from fairseq_llrnn.cli.main import load as load_command
from fairseq_llrnn.cli.prior.command import recipe_of

FOLDERS = ("adaptation", "french_morphology", "translation", "translators")


def said(folder: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Names of a folder's rows, each with its options."""
    modules = {
        "adaptation": ("systems",),
        "french_morphology": ("experiments",),
        "translation": ("multi30k_recipes",),
        "translators": ("translator_rows",),
    }
    (rows,) = load((OF_RESEARCH if folder == "translators" else EXAMPLES) / folder, *modules[folder])
    if folder == "adaptation":
        place, sizes = rows.Place(EXAMPLES), argparse.Namespace(top_words=10)
        for system in rows.SYSTEMS:
            yield system.name, rows.prior(system, "domain", 10, place, sizes)
    elif folder == "french_morphology":
        yield from ((model.name, model.prior.arguments) for model in rows.models() if model.prior is not None)
    else:
        yield from ((name, shlex.split(options)) for name, options in rows.PRIORS.items())


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_row_says_what_the_command_takes(folder: str) -> None:
    parser, rows = Parser(load_command("prior")), list(said(folder))
    assert rows
    for name, options in rows:
        recipe, _ = recipe_of(parser.parse_args(["--dict", "dict.txt", "--out", "prior", *options]))
        assert recipe.dictionary, name
