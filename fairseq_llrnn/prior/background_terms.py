"""The backgrounds that an expression names (`unigram`, `ngram:3`, `automaton:FILE`, …), each built as a part of a
prior.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.reading import is_file_or_pipe, name_of
from fairseq_llrnn.prior.expression import Atom, Expression, atoms
from fairseq_llrnn.prior.expression_parser import parse
from fairseq_llrnn.prior.named_backgrounds import Inputs, NamedBackground, named_background
from fairseq_llrnn.prior.part import Part, PriorView
from fairseq_llrnn.prior.parts.static import TABLE, StaticPart, check_static
from fairseq_llrnn.settings import Settings, check_files, checked, keys, with_paths


def kind_of(text: str) -> tuple[str, str]:
    """Return the kind of an atom and the text after its colon: ("ngram", "3"). For a path: TABLE and the path."""
    kind, colon, source = text.partition(":")
    is_name = bool(colon) or kind.isidentifier()  # all else is a path, which needs no look-up
    return (kind, source) if is_name and named_background(kind) is not None else (TABLE, text)


def registered(atom_text: str) -> NamedBackground:
    """Return the background that is registered under the name of an atom."""
    named = named_background(kind_of(atom_text)[0])
    assert named is not None  # checked by kind_of
    return named


def is_static(atom_text: str) -> bool:
    """Return whether a background has the same weights in every context."""
    return registered(atom_text).part is StaticPart


def read_background(text: str, option: str = "--background") -> Expression:
    """Return the expression of an option. A path with blanks needs no quotes if it is the whole text.

    Text that follows the grammar is an expression, whatever files exist.

    Args:
        option: its name in errors.

    Raises:
        OptionError: the text is no expression, nothing follows a colon, or a named file does not exist.
    """
    expression = parse_or_path(text, option)
    for atom in atoms(expression):
        file_of(atom.text, option)
        options_of(atom, option)
    return expression


def named_in(expression: Expression) -> list[tuple[Atom, NamedBackground]]:
    """Return each atom with the background that is registered under its name."""
    return [(atom, registered(atom.text)) for atom in atoms(expression)]


def check_background(expression: Expression, texts: Sequence[str], has_opener: bool) -> None:
    """Check the backgrounds before any text is read.

    Args:
        texts: the training text.
        has_opener: whether trained models can be read (`open_model`).

    Raises:
        OptionError: a background that cannot be combined, options that exclude each other, or a model without
            `open_model`.
        DataError: a file that an option names does not exist.
    """
    for atom, named in named_in(expression):
        if not (named.part.is_base or isinstance(expression, Atom)):
            raise OptionError(
                f"--background {expression}: {atom} changes the background below it and cannot be combined with "
                "others; give it alone, over the unigram, or wrap another background in Python (ClassSource.bind)"
            )
        if named.part.needs_fairseq and not has_opener:
            raise OptionError(
                f"--background {atom.text}: only fairseq reads a trained model; build this prior with `llrnn prior`, "
                "or pass `open_model` to `build` of prior/building.py"
            )
        check_files(options := options_of(atom), partial("--background {}: {}".format, atom))
        if named.check is not None:
            named.check(kind_of(atom.text)[1], options, texts)


def parse_or_path(text: str, option: str = "--background") -> Expression:
    """Return the expression of a text without looking for its files. Raises OptionError for invalid text."""
    try:
        return parse(text, option)
    except OptionError:
        if not is_file_or_pipe(kind_of(text)[1]):
            raise
        return Atom(text)


def options_of(atom: Atom, option: str = "--background") -> Settings:
    """Return the options of an atom. Raises OptionError for an unknown option or an invalid value."""
    owner = registered(atom.text).options
    return checked(owner, dict(atom.options), lambda name: f"{option} {atom}: {name}".removesuffix(": "))


def with_files(atom: Atom, change: Callable[[str], str]) -> Atom:
    """Return an atom with changed paths, whether or not the files exist."""
    kind, source = kind_of(atom.text)
    text = atom.text
    if source:
        try:
            is_file = registered(text).is_file(source)
        except ValueError:
            is_file = True  # a missing file
        text = f"{kind}:{change(source)}".removeprefix(":") if is_file else text
    changed = with_paths(options_of(atom), change)
    paths = {key.field for key in keys(type(changed)) if key.is_path}
    options = ((name, getattr(changed, name) if name in paths else value) for name, value in atom.options)
    return Atom(text, atom.part, tuple(options))


def file_of(text: str, option: str = "--background") -> str | None:
    """Return the file after the colon of an atom, or None if there is no colon or the text after it is no file.

    Raises:
        OptionError: nothing follows the colon, or it is not valid.
    """
    kind, source = kind_of(text)
    if kind == TABLE:
        check_static(text, option)
    named = registered(text)
    if not source and ":" in named.example:
        raise OptionError(f"{option} {text}: expected a value after the name, found none; write e.g. {named.example}")
    try:
        return source if named.is_file(source) else None
    except ValueError as error:
        raise OptionError(f"{option} {text}: {error}") from None


def with_names(atom: Atom) -> Atom:
    """Return an atom with file names instead of paths, as a prior describes it: the folders do not matter."""
    return with_files(atom, name_of)


def static_log_weights(atom: Atom, prior: PriorView, inputs: Inputs) -> np.ndarray:
    """Return log b(x) in nats of a static background: (V,). Raises the OptionError or DataError of its reader."""
    part, _ = read_part(atom, prior, inputs)
    assert isinstance(part, StaticPart)
    return part.log_weights


def read_part(atom: Atom, prior: PriorView, inputs: Inputs) -> tuple[Part, Mapping[str, int]]:
    """Return the part of an atom, over the prior's b₀, and notes for the user with counts."""
    named = registered(atom.text)
    assert named.read is not None
    return named.read(kind_of(atom.text)[1], prior, replace(inputs, options=options_of(atom)))
