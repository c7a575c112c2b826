"""The backgrounds that an expression names (`unigram`, `ngram:3`, `automaton:FILE`, …), each as a part of a prior."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.reading import is_file_or_pipe
from fairseq_llrnn.prior.expression import Atom, Expression, atoms
from fairseq_llrnn.prior.expression_parser import parse
from fairseq_llrnn.prior.named_backgrounds import Inputs, NamedBackground, named_background
from fairseq_llrnn.prior.part import Part, PriorView
from fairseq_llrnn.prior.parts.static import TABLE, StaticPart, check_static
from fairseq_llrnn.settings import Settings, check_files, checked, keys, with_paths


def kind_of(text: str) -> tuple[str, str]:
    """Kind of an atom, and what is behind its colon: ("ngram", "3"); TABLE and the text for a path."""
    kind, colon, source = text.partition(":")
    is_name = bool(colon) or kind.isidentifier()  # else a path: nobody has to be asked
    return (kind, source) if is_name and named_background(kind) is not None else (TABLE, text)


def registered(atom_text: str) -> NamedBackground:
    """What was registered under the name of an atom."""
    named = named_background(kind_of(atom_text)[0])
    assert named is not None  # as kind_of found
    return named


def is_static(atom_text: str) -> bool:
    """Whether a background has the same weights everywhere."""
    return registered(atom_text).part is StaticPart


def read_background(text: str, option: str = "--background") -> Expression:
    """The expression of an option, as errors call it; a path with blanks needs no quotes where it stands alone.

    What is written by the grammar is an expression, whatever files there are; the disk is asked about nothing else.

    Raises:
        OptionError: it says none, nothing is behind a colon, or the file that is named does not exist.
    """
    expression = parse_or_path(text, option)
    for atom in atoms(expression):
        file_of(atom.text, option)
        options_of(atom, option)
    return expression


def named_in(expression: Expression) -> list[tuple[Atom, NamedBackground]]:
    """The atoms, and what was registered under their names."""
    return [(atom, registered(atom.text)) for atom in atoms(expression)]


def check_background(expression: Expression, texts: Sequence[str], has_opener: bool) -> None:
    """Say what would be refused when it is read.

    Args:
        texts: the training text. has_opener: whether somebody can read trained models.

    Raises:
        OptionError: one that cannot stand beside others; what does not go together; a model that nobody can read.
        DataError: a file that an option names is not there.
    """
    for atom, named in named_in(expression):
        if not (named.part.is_base or isinstance(expression, Atom)):
            raise OptionError(
                f"--background {expression}: expected backgrounds that stand by themselves, found {atom}, which "
                "changes the one below it; say it alone"
            )
        if named.part.needs_fairseq and not has_opener:
            raise OptionError(
                f"--background {atom.text}: a trained model is read by fairseq; build this prior with `llrnn prior`, "
                "or say who reads it (`open_model` of prior/building.py)"
            )
        check_files(options := options_of(atom), partial("--background {}: {}".format, atom))
        if named.check is not None:
            named.check(kind_of(atom.text)[1], options, texts)


def parse_or_path(text: str, option: str = "--background") -> Expression:
    """The expression, whether or not its files are there. Raises OptionError: it says none."""
    try:
        return parse(text, option)
    except OptionError:
        if not is_file_or_pipe(kind_of(text)[1]):
            raise
        return Atom(text)


def options_of(atom: Atom, option: str = "--background") -> Settings:
    """The options of an atom. Raises OptionError for one that it has not, or a value that is none."""
    owner = registered(atom.text).options
    return checked(owner, dict(atom.options), lambda name: f"{option} {atom}: {name}".removesuffix(": "))


def with_files(atom: Atom, change: Callable[[str], str]) -> Atom:
    """An atom with other paths, whether or not the files are there."""
    kind, source = kind_of(atom.text)
    text = atom.text
    if source:
        try:
            is_file = registered(text).is_file(source)
        except ValueError:
            is_file = True  # one that is not there
        text = f"{kind}:{change(source)}".removeprefix(":") if is_file else text
    changed = with_paths(options_of(atom), change)
    paths = {key.field for key in keys(type(changed)) if key.is_path}
    options = ((name, getattr(changed, name) if name in paths else value) for name, value in atom.options)
    return Atom(text, atom.part, tuple(options))


def file_of(text: str, option: str = "--background") -> str | None:
    """The file behind the name of an atom; None where there is no colon, or something else behind it.

    Raises:
        OptionError: nothing is there, or what will not do.
    """
    kind, source = kind_of(text)
    if kind == TABLE:
        check_static(text, option)
    named = registered(text)
    if not source and ":" in named.example:
        raise OptionError(
            f"{option} {text}: expected something behind the name, found nothing; say e.g. {named.example}"
        )
    try:
        return source if named.is_file(source) else None
    except ValueError as error:
        raise OptionError(f"{option} {text}: {error}") from None


def with_names(atom: Atom) -> Atom:
    """An atom as a prior describes it, by the names of files: where they were changes nothing."""
    return with_files(atom, os.path.basename)


def static_log_weights(atom: Atom, prior: PriorView, inputs: Inputs) -> np.ndarray:
    """log b(x) in nats of a static background: (V,). Raises OptionError, DataError as its reader does."""
    part, _ = read_part(atom, prior, inputs)
    assert isinstance(part, StaticPart)
    return part.log_weights


def read_part(atom: Atom, prior: PriorView, inputs: Inputs) -> tuple[Part, Mapping[str, int]]:
    """The part of an atom, over the prior's b₀, and what a user should know about it."""
    named = registered(atom.text)
    assert named.read is not None
    return named.read(kind_of(atom.text)[1], prior, replace(inputs, options=options_of(atom)))
