"""The errors a user can cause.

Each message says what was expected, what was found, where, and how to fix it. Commands print the message alone, no
stack trace; `llrnn` then exits with status 2, fairseq's own commands with 1.

What a message quotes may be as long as a file: `as_one_line` shortens it, in every message of these classes.
"""

import argparse
import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

MOST_CHOICES = 10  # that a message lists
LONGEST_VALUE = 80  # characters of a value in quotes
LONGEST_PATH = 250  # … and of anything without blanks, so that paths are shown whole
LONGEST_MESSAGE = 1000
_QUOTED = re.compile(r"""(?<!\w)(['"])((?:(?!\1)[^\\]|\\.)*)\1(?!\w)""")
_WITHOUT_BLANKS = re.compile(rf"\S{{{LONGEST_PATH + 1},}}")


def as_one_line(message: str) -> str:
    """A message with its long values cut, and with escapes for what cannot be printed, ends of lines among it."""
    if not message.isprintable():
        message = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
    message = _QUOTED.sub(lambda match: f"{match[1]}{_cut(match[2])}{match[1]}", message)
    message = _WITHOUT_BLANKS.sub(lambda match: _without_middle(match[0], LONGEST_PATH), message)
    return _without_middle(message, LONGEST_MESSAGE)


def _cut(value: str) -> str:
    longest = LONGEST_PATH if "/" in value and " " not in value else LONGEST_VALUE
    return value if len(value) <= longest else f"{value[: longest - 1]}…"


def _without_middle(text: str, longest: int) -> str:
    """The beginning says where something is wrong, the end how to fix it."""
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[1 - longest // 2 :]}"


class LLRNNError(Exception):
    """Base of every error that is a user's to fix.

    Args:
        path: what the message begins with, a file or folder that is not there, cannot be read or is of another kind:
            commands put the option before it that named it.
    """

    def __init__(self, message: str, path: object = None) -> None:
        super().__init__(as_one_line(message))
        self.path = None if path is None else str(path)


class DataError(LLRNNError):
    """A text, treebank, lexicon, dictionary or checkpoint that cannot be used as it is."""


class PriorError(LLRNNError):
    """A prior that is damaged, of another version, or made for another dictionary."""


class OptionError(LLRNNError):
    """An option whose value makes no sense, alone or beside the others."""


def with_option(error: LLRNNError, named: Iterable[tuple[str, str]]) -> str:
    """The message of an error, behind the option that named its path: `--system best=best.out: …`.

    The longest value that is the path, or a folder or prefix that it is in, has named it.

    Args:
        named: options and their values; an empty string for the option of an argument without one.
    """
    message, path = str(error), error.path or ""
    options = [(0, False, message)]  # how long the path is, and whether it has no option
    for option, value in named if path else ():
        name, _, rest = value.partition("=")  # of NAME=FILE, and of KEY=VALUE
        whole = ((f"{name}=", rest), ("", value))
        for begin, place in (*whole, *(("", each) for each in re.split(r"[,:]", value))):  # as fairseq parts several
            if place and (path == place or path.startswith((f"{place}/", f"{place}."))):
                options.append((len(place), not option, f"{option} {begin}{message}" if option else message))
    return max(options)[2]


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise OptionError for an argument that is none of the choices; the message names the nearest one."""
    if value not in choices:
        near = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.5)
        advice = f"did you mean {near[0]!r}?" if near else "give one of them"
        raise OptionError(f"{name}={value!r}: expected one of {', '.join(choices)}; {advice}")


def check_least(option: str, value: float | None, least: int, of: str = "") -> None:
    """Raise OptionError for what is no whole number, or one below `least`.

    Args:
        value: None where the option is absent.
        of: what it is a number of, in the plural.
    """
    whole = hasattr(value, "__index__")
    if value is not None and not (whole and value >= least):
        kind = ("a number" if whole else "a whole number") + (f" of {of}" if of else "")
        raise OptionError(f"{option} {value}: expected {kind} of at least {least}")


def check_unused_options(options: Mapping[str, object], reason: str) -> None:
    """Raise OptionError for the first option that is present, where none of them would do anything.

    Args:
        options: values by name; None, and an empty list, are absent.
        reason: what is expected and found, and how to fix it.
    """
    for name, value in options.items():
        if value is not None and value != []:
            raise OptionError(f"--{name.replace('_', '-')}{'' if value is True else f' {value}'}: {reason}")


def exit_with_argument_error(parser: argparse.ArgumentParser, arguments: Sequence[str], message: str) -> NoReturn:
    """Exit with status 2 and one line: what is wrong with the arguments of a command, and the nearest option or choice.

    Args:
        arguments: those of the command; where one is missing, a misspelt option among them may be why.
        message: argparse's.
    """
    from fairseq_llrnn.registry import lost  # which raises these errors

    names = [name for action in parser._actions for name in action.option_strings]
    begins = (lambda word: any(name.startswith(word) for name in names)) if parser.allow_abbrev else names.__contains__
    among_all = [] if message.startswith("argument ") else arguments  # of a known option, none is sought
    words = message.partition("unrecognized arguments: ")[2].split() or among_all
    options = (word.partition("=")[0] for word in words if word.startswith("--"))
    searched, among = next((word for word in options if not begins(word)), ""), names
    if searched and "required" in message:  # which argparse says first
        message = f"{message}; there is no {searched}"
    message = message.replace("<lambda> ", "")  # the type that fairseq gives to some values
    choice = re.fullmatch(r"(.*invalid choice: '(.*)') \(choose from (.*)\)", message, re.DOTALL)
    if choice is not None:
        searched, among = choice[2], re.findall(r"'([^']*)'", choice[3])
        message = message if len(among) <= MOST_CHOICES else choice[1]
    # --hidden-size is meant as --decoder-hidden-size or one of its like
    longer = [name for name in among if searched.startswith("--") and name.endswith(searched[1:])]
    # below 0.75, the nearest to an option of another command is one that has nothing to do with it
    near = longer[:3] or difflib.get_close_matches(searched, among, n=1, cutoff=0.75)
    advice = f"did you mean {' or '.join(near)}?" if near else f"{parser.prog} --help shows what there is"
    if _are_a_value(words, arguments):
        advice = f"a value with blanks needs quotes around it; {parser.prog} --help shows what there is"
    advice = lost(searched) or advice
    parser.exit(2, as_one_line(f"{parser.prog}: error: {message}; {advice}") + "\n")


def _are_a_value(words: Sequence[str], arguments: Sequence[str]) -> bool:
    """Whether several words stand behind the value of an option: `--background ngram:3 plus cache:500`."""
    places = range(2, len(arguments) - len(words) + 1)
    return len(words) > 1 and any(
        list(arguments[at : at + len(words)]) == list(words)
        and arguments[at - 2].startswith("--")
        and not any(word.startswith("--") for word in arguments[at - 1 : at + len(words)])
        for at in places
    )


def need_library(what: str, library: str, extra: str) -> None:
    """Raise OptionError where a library is not installed that is in an extra of this package; `what` needs it."""
    try:
        import_module(library)
    except ModuleNotFoundError:
        raise OptionError(f"{what}: expected the library {library}, found none; {from_checkout(extra)}") from None


def from_checkout(extra: str) -> str:
    """How an extra of this package is installed: it is on no index of packages."""
    isolation = "--no-build-isolation " if extra == "fairseq" else ""  # fairseq's build imports torch and numpy
    return f"in a checkout of fairseq_llrnn: pip install {isolation}'.[{extra}]'"
