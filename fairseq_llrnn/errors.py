"""The errors a user can cause.

Each message says what was expected, what was found, where, and how to fix it. Commands print the message alone, no
stack trace; `llrnn` then exits with status 2, fairseq's own commands with 1.
"""


class LLRNNError(Exception):
    """Base of every error that is a user's to fix."""


class DataError(LLRNNError):
    """A text, treebank, lexicon, dictionary or checkpoint that cannot be used as it is."""


class PriorError(LLRNNError):
    """A prior that is damaged, of another version, or made for another dictionary."""


class OptionError(LLRNNError):
    """An option whose value makes no sense, alone or beside the others."""


def check_least(option: str, value: float | None, least: int, of: str = "") -> None:
    """Raise OptionError for a number below `least`.

    Args:
        value: None where the option was not given. of: what it is a number of, in the plural.
    """
    if value is not None and not value >= least:  # NaN, too
        kind = f"a number of {of}" if of else "a number"
        raise OptionError(f"{option} {value}: expected {kind} of at least {least}")
