"""Limits of numbers from users and files: above any useful value, and below the loss of precision.

A finite number can be as harmful as NaN: with a log weight of 1e30, the shares of a class no longer sum to one. Log
weights are float64, whose digits resolve 1e-5 of a sum up to logarithms of 1e9: LARGEST_STORED_LOG at the lowest
temperature. Parameters of the network are single precision, and sums of their products must not overflow.
"""

from annotated_types import Ge, Le

from fairseq_llrnn.errors import OptionError

LARGEST_COUNT = 10**12  # of a word: sums over a dictionary fit into 64 bits
LARGEST_WEIGHT, LEAST_WEIGHT = 1e99, 1e-99  # of words and arcs, unless 0
LARGEST_LOG = 1_000.0  # of a log weight in a text file, natural or decimal
LARGEST_STORED_LOG = 1_000_000.0  # of a log weight in a prior, in nats: a sum of LARGEST_LOG at a temperature
TEMPERATURES = 0.01, 100.0  # of a background, after multiplying nested ones
TEMPERATURE = Ge(TEMPERATURES[0]), Le(TEMPERATURES[1])  # for settings
SCORE_TEMPERATURES = 1e-6, 1e6  # of a search, for scores in single precision
LARGEST_PARAMETER = 1e6  # of a model
LARGEST_PENALTY = 1e6  # of a term of the loss
LARGEST_LOG_PROB = 1e100  # of a stored model score, in nats: sums of such scores are finite
LARGEST_VALUE = 1e6  # of a feature
LARGEST_SCORE = 1e12  # of a hypothesis, and of a weight in their sum


def read_count(text: str) -> int | None:
    """Return the count that a text of digits is, or None for another text, or one above LARGEST_COUNT."""
    is_count = text.isdecimal() and len(text) <= 100  # Python reads at most 4,300 digits
    return int(text) if is_count and int(text) <= LARGEST_COUNT else None


def is_weight(number: float) -> bool:
    """Return whether a positive weight is within the limits."""
    return LEAST_WEIGHT <= number <= LARGEST_WEIGHT


def is_temperature(value: object) -> bool:
    """Return whether a value of any type is a number in TEMPERATURES."""
    least, most = TEMPERATURES
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


def temperature_range() -> str:
    """Return the allowed temperatures as text for messages."""
    least, most = TEMPERATURES
    return f"a temperature from {least:g} to {most:g}"


def check_penalty(option: str, value: float) -> None:
    """Raise OptionError for a weight of a loss term that is negative, or with which gradients may overflow."""
    if not 0.0 <= value <= LARGEST_PENALTY:  # NaN is not
        raise OptionError(f"{option} {value}: expected a number from 0 to {LARGEST_PENALTY:,.0f}, e.g. 0.1")
