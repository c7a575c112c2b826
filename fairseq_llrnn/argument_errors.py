"""The one line with which a command exits if its arguments are wrong."""

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from typing import NoReturn

from fairseq_llrnn.errors import as_one_line
from fairseq_llrnn.registry import lost

MOST_CHOICES = 10  # in a message


def exit_with_argument_error(
    parser: argparse.ArgumentParser, arguments: Sequence[str], message: str, is_near: Callable[[str], bool] = bool
) -> NoReturn:
    """Exit with status 2 and one line: the error in a command's arguments, and the nearest option or choice.

    Args:
        arguments: of the command; a misspelt option among them may explain a missing one.
        message: argparse's.
        is_near: whether to suggest a choice.
    """
    names = [name for action in parser._actions for name in action.option_strings]
    begins = (lambda word: any(name.startswith(word) for name in names)) if parser.allow_abbrev else names.__contains__
    among_all = [] if message.startswith("argument ") else arguments  # the option is known
    words = message.partition("unrecognized arguments: ")[2].split() or among_all
    options = (word.partition("=")[0] for word in words if word.startswith("--"))
    searched, among = next((word for word in options if not begins(word)), ""), names
    if searched and "required" in message:  # argparse reports missing options first
        message = f"{message}; there is no {searched}"
    message = message.replace("<lambda> ", "")  # the type of some values in fairseq
    choice = re.fullmatch(r"(.*invalid choice: '(.*)') \(choose from (.*)\)", message, re.DOTALL)
    if choice is not None:
        searched, among = choice[2], re.findall(r"'([^']*)'", choice[3])
        message = message if len(among) <= MOST_CHOICES else choice[1]
        among = [*filter(is_near, among)]
    # --hidden-size may mean --decoder-hidden-size
    longer = [name for name in among if searched.startswith("--") and name.endswith(searched[1:])]
    # below 0.75, the nearest name to an option of another command is unrelated
    near = longer[:3] or difflib.get_close_matches(searched, among, n=1, cutoff=0.75)
    advice = f"did you mean {' or '.join(near)}?" if near else f"{parser.prog} --help lists all options"
    if _are_a_value(words, arguments):
        advice = f"a value with blanks needs quotes around it; {parser.prog} --help lists all options"
    advice = lost(searched) or advice
    parser.exit(2, as_one_line(f"{parser.prog}: error: {message}; {advice}") + "\n")


def _are_a_value(words: Sequence[str], arguments: Sequence[str]) -> bool:
    """Return whether several words follow the value of an option: `--background ngram:3 plus cache:500`."""
    places = range(2, len(arguments) - len(words) + 1)
    return len(words) > 1 and any(
        list(arguments[at : at + len(words)]) == list(words)
        and arguments[at - 2].startswith("--")
        and not any(word.startswith("--") for word in arguments[at - 1 : at + len(words)])
        for at in places
    )
