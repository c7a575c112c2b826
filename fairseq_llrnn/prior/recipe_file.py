"""Recipes as files: prior.toml, and the recipe.toml of a prior.

    text = "train.txt"                      # relative paths are relative to the file
    background = "ngram(3, folds=10)"

    [words]
    conllu = ["fr.conllu"]

The keys are those of `Recipe` (recipe.py). A missing key has its default.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.files.reading import is_pipe, read_whole, reading
from fairseq_llrnn.files.toml import LONGEST, read_toml
from fairseq_llrnn.prior.background_terms import parse_or_path, with_files
from fairseq_llrnn.prior.directory import RECIPE_FILE
from fairseq_llrnn.prior.expression import with_atoms
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.settings import checked, plain_values, with_paths

HEADER = (
    "# The settings of this prior. `llrnn prior --recipe recipe.toml --out DIR` builds it again.\n"
    "# Relative paths start at this folder.\n"
)


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe. Its paths become relative to the working directory.

    Raises:
        DataError: no file, or no TOML.
        OptionError: an unknown key or an invalid value.
    """
    try:
        with reading(path):
            values = read_toml(path, "surrogateescape")  # as names of files in Python
    except ValueError as error:
        raise DataError(f"{path}: expected a recipe in TOML, found something else ({error}); correct it") from None
    recipe = checked(Recipe, values, lambda name: f"{path}: {name}" if name else str(path))
    folder = "" if is_pipe(path) else os.path.dirname(path)
    return _change_paths(recipe, lambda relative: os.path.join(folder, relative))


def kept_recipe(recipe: Recipe | None, folder: str | None, directory: str | Path | None) -> str:
    """Return the text of recipe.toml: of `recipe`, or of the prior that was read from `folder`. "" if there is none.

    Args:
        directory: the folder that its paths are to be relative to (None: unchanged).
    """
    if recipe is None:
        file = os.path.join(str(folder), RECIPE_FILE)
        if not os.path.isfile(file):
            return ""
        try:
            with reading(file):
                text = read_whole(file, LONGEST).decode("utf-8", "surrogateescape")
            if directory is None or os.path.realpath(directory) == os.path.realpath(str(folder)):
                return text
            recipe = read_recipe(file)
        except (DataError, OptionError):  # of another version, or damaged; nothing depends on it
            return ""
    return recipe_text(recipe, directory or ".")


def recipe_text(recipe: Recipe, folder: str | Path) -> str:
    """Return the text of a recipe for a file in `folder`: the keys that differ from the defaults, in their order."""
    import tomli_w

    place = os.path.realpath(folder)

    def seen_from_there(path: str) -> str:
        whole = os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))
        return path if path.startswith(("/dev/", "/proc/")) else os.path.relpath(whole, place)

    values, objects = plain_values(_change_paths(recipe, seen_from_there))
    objects += ["dictionary"] if recipe.dictionary is None else []
    header = f"# Given in Python, and to be given again: {', '.join(objects)}.\n" if objects else ""
    return HEADER + header + "\n" + tomli_w.dumps(values)


def _change_paths(recipe: Recipe, change: Callable[[str], str]) -> Recipe:
    """Return the recipe with changed paths, also in its backgrounds."""

    def change_background(text: str) -> str:
        try:
            return str(with_atoms(parse_or_path(text), lambda atom: with_files(atom, change)))
        except OptionError:  # raised when the prior is built
            return text

    over = None if recipe.over is None else change_background(recipe.over)
    return replace(with_paths(recipe, change), background=change_background(recipe.background), over=over)
