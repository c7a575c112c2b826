"""How large a number may be that a user or a file gives: beyond what is of use, and below where digits are lost.

A finite number can do what NaN does: with a log weight of 1e30, the shares of a class no longer sum to one. Log weights
are kept in float64, whose digits last for 1e-5 of a sum up to logarithms of 1e9: LARGEST_STORED_LOG at the least
temperature. Parameters are the network's, in single precision: sums of their products must not overflow.
"""

from annotated_types import Ge, Le

from fairseq_llrnn.errors import OptionError

LARGEST_WEIGHT, LEAST_WEIGHT = 1e99, 1e-99  # of words and arcs, where it is not 0
LARGEST_LOG = 1_000.0  # of a log weight in a text file, natural or decimal
LARGEST_STORED_LOG = 1_000_000.0  # of a log weight in a prior, in nats: what sums of those at a temperature come to
TEMPERATURES = 0.01, 100.0  # of a background, all that it is under together
TEMPERATURE = Ge(TEMPERATURES[0]), Le(TEMPERATURES[1])  # of settings
SCORE_TEMPERATURES = 1e-6, 1e6  # of a search, which divide scores in single precision
LARGEST_PARAMETER = 1e6  # of a model
LARGEST_PENALTY = 1e6  # of what is added to a loss
LARGEST_LOG_PROB = 1e100  # of a model's score that was kept, in nats: sums of such scores are finite
LARGEST_VALUE = 1e6  # of a feature
LARGEST_SCORE = 1e12  # of a hypothesis, and of a weight in their sum


def is_weight(number: float) -> bool:
    """Whether a weight above 0 is one that we take."""
    return LEAST_WEIGHT <= number <= LARGEST_WEIGHT


def is_temperature(value: object) -> bool:
    """Whether it is a number in TEMPERATURES, wherever it comes from."""
    least, most = TEMPERATURES
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


def temperature_range() -> str:
    """What messages expect."""
    least, most = TEMPERATURES
    return f"a temperature from {least:g} to {most:g}"


def check_penalty(option: str, value: float) -> None:
    """Raise OptionError for a weight of a term in a loss that is negative, or with which gradients may overflow."""
    if not 0.0 <= value <= LARGEST_PENALTY:  # NaN is not
        raise OptionError(f"{option} {value}: expected a number from 0 to {LARGEST_PENALTY:,.0f}, e.g. 0.1")
