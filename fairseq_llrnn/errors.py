"""The errors that users can cause.

Each message has the expectation, the finding, the place and the fix. Commands print the message alone, without
a traceback. `llrnn` then exits with status 2, fairseq's own commands with 1.

A quoted value may be as long as a file: `as_one_line` shortens it, in every message of these classes.
"""

import difflib
import functools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from typing import ParamSpec

LONGEST_VALUE = 80  # characters of a value in quotes
LONGEST_PATH = 250  # characters of an absolute path or a value without blanks, so that paths are complete
LONGEST_MESSAGE = 1000
_QUOTED = re.compile(r"""(?<!\w)(['"])((?:(?!\1)[^\\]|\\.)*)\1(?!\w)""")
_WITHOUT_BLANKS = re.compile(rf"\S{{{LONGEST_PATH + 1},}}")


def as_one_line(message: str) -> str:
    """Return a message with long values cut, and with escapes for unprintable characters, including line ends."""
    if not message.isprintable():
        message = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
    message = _QUOTED.sub(lambda match: f"{match[1]}{_cut(match[2])}{match[1]}", message)
    message = _WITHOUT_BLANKS.sub(lambda match: _without_middle(match[0], LONGEST_PATH), message)
    return _without_middle(message, LONGEST_MESSAGE)


def _cut(value: str) -> str:
    is_path = value.startswith("/") or ("/" in value and " " not in value)
    longest = LONGEST_PATH if is_path else LONGEST_VALUE
    return value if len(value) <= longest else f"{value[: longest - 1]}…"


def _without_middle(text: str, longest: int) -> str:
    """Cut the middle of a text: the beginning has the place of an error, the end has its fix."""
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[1 - longest // 2 :]}"


class LLRNNError(Exception):
    """Base of all errors that a user can fix.

    Args:
        path: the file or folder at the beginning of the message, if it is missing, unreadable or of another kind;
            commands prepend the option with this path.
    """

    def __init__(self, message: str, path: object = None) -> None:
        super().__init__(as_one_line(message))
        self.path = None if path is None else str(path)


class DataError(LLRNNError):
    """A text, treebank, lexicon, dictionary or checkpoint that cannot be used."""


class PriorError(LLRNNError):
    """A prior that is damaged, of another version, or made for another dictionary."""


class OptionError(LLRNNError):
    """An option with an invalid value, alone or in combination with others."""


def with_option(error: LLRNNError, named: Iterable[tuple[str, str]]) -> str:
    """Return the message of an error after the option with its path: `--system best=best.out: …`.

    This is the option with the longest value that is the path, or a folder or prefix of it.

    Args:
        named: options and their values; an empty string for the option of a positional argument.
    """
    message, path = str(error), error.path or ""
    options = [(0, False, message)]  # length of the value, whether it has no option, message
    for option, value in named if path else ():
        name, _, rest = value.partition("=")  # NAME=FILE or KEY=VALUE
        whole = ((f"{name}=", rest), ("", value))
        for begin, place in (*whole, *(("", part) for part in re.split(r"[,:]", value))):  # separators of fairseq
            if place and (path == place or path.startswith((f"{place}/", f"{place}."))):
                options.append((len(place), not option, f"{option} {begin}{message}" if option else message))
    return max(options)[2]


def did_you_mean(value: str, choices: Collection[str], otherwise: str, cutoff: float = 0.6) -> str:
    """Return advice with the nearest choice, or `otherwise` if none is near. cutoff: of difflib."""
    near = difflib.get_close_matches(value, choices, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else otherwise


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise OptionError if a value is none of the choices, with the nearest one in the message."""
    if value not in choices:
        advice = did_you_mean(str(value), choices, "give one of them", cutoff=0.5)
        raise OptionError(f"{name}={value!r}: expected one of {', '.join(choices)}; {advice}")


def check_least(option: str, value: float | None, least: int, of: str = "") -> None:
    """Raise OptionError for a value that is no whole number, or below `least`.

    Args:
        value: None if the option is absent.
        of: the counted things, in the plural.
    """
    whole = hasattr(value, "__index__")
    if value is not None and not (whole and value >= least):
        kind = ("a number" if whole else "a whole number") + (f" of {of}" if of else "")
        raise OptionError(f"{option} {value}: expected {kind} of at least {least}")


def check_unused_options(options: Mapping[str, object], reason: str) -> None:
    """Raise OptionError for the first option that is present, if none of them would have an effect.

    Args:
        options: values by name; None and an empty list are absent.
        reason: what is expected and found, and the fix.
    """
    for name, value in options.items():
        if value is not None and value != []:
            raise OptionError(f"--{name.replace('_', '-')}{'' if value is True else f' {value}'}: {reason}")


def need_library(what: str, library: str, extra: str) -> None:
    """Raise OptionError if a library of one of this package's extras is not installed. `what` needs it."""
    try:
        import_module(library)
    except ModuleNotFoundError:
        raise OptionError(f"{what}: expected the library {library}, found none; {from_checkout(extra)}") from None


def from_checkout(extra: str) -> str:
    """Return the command that installs an extra of this package, which is in no package index."""
    isolation = "--no-build-isolation " if extra == "fairseq" else ""  # fairseq's build imports torch and numpy
    return f"in a checkout of fairseq_llrnn: pip install {isolation}'.[{extra}]'"


Given = ParamSpec("Given")


def one_line_errors(script: str) -> Callable[[Callable[Given, int | None]], Callable[Given, int]]:
    """Decorate the `main` of a script: it returns 2 after a user's error or an unreadable file, printed in one line."""

    def decorate(main: Callable[Given, int | None]) -> Callable[Given, int]:
        @functools.wraps(main)
        def run(*given: Given.args, **named: Given.kwargs) -> int:
            try:
                return main(*given, **named) or 0
            except (LLRNNError, OSError) as error:
                print(f"{script}: error: {error}", file=sys.stderr)
                return 2

        return run

    return decorate
